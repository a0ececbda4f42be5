"""The demo: two scans of a simulated room, registered by `pcreg register`, checked against the truth.

Writes source.ply, target.ply, aligned.ply, result.json and overview.png to demo/.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from pcreg.cli import register
from pcreg.datasets.simulated.indoor import record_scans
from pcreg.datasets.simulated.recorded import ScenePairs
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import rotation_about, rotation_error, se3, transform, translation_error
from pcreg.io.cloud import write_ply
from pcreg.runtime.errors import InputError
from pcreg.viz.overview import overview
from pcreg.viz.render import from_above, oblique

VOXEL = 0.05  # metres, at which overlap is measured
OVERLAP = 0.55  # wanted of the pair, as estimated in coarse cells
CEILING_GAP = 0.35  # metres below the highest points; the picture is cut there, to see into the room


def main(argv: list[str] | None = None) -> int:
    """Run the demo and return the exit status of the registration."""
    parser = argparse.ArgumentParser("demo.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=59, help="another room (default: %(default)s)")
    options = parser.parse_args(argv)

    recording = record_scans(options.seed, 0)
    pairs = ScenePairs.of(recording, VOXEL, minimum_overlap=0.3)
    if len(pairs.pairs) == 0:
        raise InputError(f"seed {options.seed}: no two scans of this room overlap; try another seed")
    rows = pairs.pairs[np.abs(pairs.overlap - OVERLAP).argmin()]
    source, target = (recording.clouds[row].double().numpy() for row in rows)
    T_world_source, T_world_target = recording.T_world_cloud[rows]
    T_true = recording.motion(*rows)
    overlap = measured_overlap(source, target, T_true, VOXEL)
    paths = [options.out / "source.ply", options.out / "target.ply"]
    for path, points in zip(paths, (source, target), strict=True):
        write_ply(path, points)
    print(f"Two scans of a simulated room that share {overlap:.0%} of their surface.")
    print(f"$ pcreg register {paths[0]} {paths[1]} --out {options.out}")
    status = register.main([*map(str, paths), "--out", str(options.out)])

    result = json.loads((options.out / "result.json").read_text())
    T = np.array(result["T_target_source"])
    degrees = rotation_error(T, T_true)
    centimetres = 100 * translation_error(T, T_true)
    error = f"rotation error {degrees:.2f}°, translation error {centimetres:.1f} cm"
    print(f"\ntrue error: RRE {degrees:.3f} degrees, RTE {centimetres:.2f} cm")
    T_view_target = T_view_world(T_world_source, T_world_target) @ T_world_target
    overview(
        source,
        target,
        T,
        options.out / "overview.png",
        title=f"Two scans of one room, {overlap:.0%} overlap: {error}",
        limit=2 * result["voxel"],
        T_view_target=T_view_target,
        cameras=(oblique(), from_above()),
        ceiling=transform(T_view_target, target)[:, 2].max() - CEILING_GAP,
    )
    print(f"picture: {options.out / 'overview.png'}")
    return status


def T_view_world(*T_world_camera: np.ndarray) -> np.ndarray:
    """Turn the room by quarters until the cameras look away from the picture's camera: at walls it faces."""
    heading = sum(T[:3, 2] for T in T_world_camera)
    turns = [se3(rotation_about((0, 0, 1), 90 * quarter), np.zeros(3)) for quarter in range(4)]
    return max(turns, key=lambda T: -(T[:3, :3] @ heading) @ oblique()[2])


if __name__ == "__main__":
    sys.exit(main())
