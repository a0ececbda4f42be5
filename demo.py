"""The demo: two scans of a generated room, registered by `pcreg register`, checked against the truth.

Writes source.ply, target.ply, aligned.ply, result.json and overview.png to demo/.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from pcreg.cli import register
from pcreg.datasets.simulated.room import UP
from pcreg.datasets.simulated.synthetic import ScanPair, SyntheticRooms
from pcreg.geometry.se3 import rotation_about, rotation_error, se3, transform, translation_error
from pcreg.io.cloud import write_ply
from pcreg.viz.overview import overview
from pcreg.viz.render import from_above, oblique

CEILING_GAP = 0.35  # metres below the highest points; the picture is cut there, to see into the room


def main(argv: list[str] | None = None) -> int:
    """Run the demo and return the exit status of the registration."""
    parser = argparse.ArgumentParser("demo.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=2, help="another room (default: %(default)s)")
    options = parser.parse_args(argv)

    room = SyntheticRooms(seed=options.seed, count=1).room(0)
    source, target = options.out / "source.ply", options.out / "target.ply"
    write_ply(source, room.source)
    write_ply(target, room.target)
    print(f"Two scans of a generated room that share {room.overlap:.0%} of their surface.")
    print(f"$ pcreg register {source} {target} --out {options.out}")
    status = register.main([str(source), str(target), "--out", str(options.out)])

    result = json.loads((options.out / "result.json").read_text())
    T = np.array(result["T_target_source"])
    degrees = rotation_error(T, room.T_target_source)
    centimetres = 100 * translation_error(T, room.T_target_source)
    error = f"rotation error {degrees:.2f}°, translation error {centimetres:.1f} cm"
    print(f"\ntrue error: RRE {degrees:.3f} degrees, RTE {centimetres:.2f} cm")
    T_view_target = T_view_world(room) @ room.T_world_target
    overview(
        room.source,
        room.target,
        T,
        options.out / "overview.png",
        title=f"Two scans of one room, {room.overlap:.0%} overlap: {error}",
        limit=2 * result["voxel"],
        T_view_target=T_view_target,
        cameras=(oblique(), from_above()),
        ceiling=transform(T_view_target, room.target)[:, 2].max() - CEILING_GAP,
    )
    print(f"picture: {options.out / 'overview.png'}")
    return status


def T_view_world(room: ScanPair) -> np.ndarray:
    """Turn the room by quarters until the sensors look away from the picture's camera: at walls it faces."""
    heading = room.T_world_source[:3, 0] + room.T_world_target[:3, 0]
    turns = [se3(rotation_about(UP, 90 * quarter), np.zeros(3)) for quarter in range(4)]
    return max(turns, key=lambda T: -(T[:3, :3] @ heading) @ oblique()[2])


if __name__ == "__main__":
    sys.exit(main())
