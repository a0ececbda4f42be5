"""Register two point clouds: python register.py SOURCE TARGET [--out DIR]

Prints T_target_source, which moves SOURCE into the frame of TARGET, and whether to believe it.
Files are .ply .pcd .xyz .npy .npz (metres) or KITTI .bin. Exit status: 0 registered, 1 not
registered, 2 bad input (one sentence on stderr, nothing written).

--out DIR holds
  aligned.ply   source moved into target (orange) and target (blue) as one cloud
  result.json   source, target           the files, as given
                registered               true or false
                confidence               0..1, at least 0.5 exactly when registered
                reason                   the verdict in words
                T_target_source          4 x 4, rows; p_target = R p_source + t
                inliers, overlap, rmse   matches that agree; fraction of the source; metres
                points                   {source, target}: rows used
                dropped                  {source, target}: rows left out as NaN or infinite
                descriptor, voxel, seed  what it was computed with
                seconds                  by step: read, describe, match, estimate, refine, judge
                version                  of pcreg
"""

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np

from pcreg.cloud import Cloud, read_cloud, write_ply
from pcreg.descriptors import FCGF, FPFH, Descriptor
from pcreg.errors import InputError
from pcreg.figures import SOURCE, TARGET
from pcreg.files import replacing
from pcreg.geometry import transform
from pcreg.pipeline import Registrar, Registration

VOXELS_PER_EXTENT = 120  # about 15,000 voxels on a surface as large as the scan
LARGEST_VOXEL = 0.3  # metres: the usual one for LiDAR, whose far ends carry no finer shape


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = parser().parse_args(argv)
    try:
        return 0 if run(options).registered else 1
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("register.py", description=__doc__, formatter_class=formatter)
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("target", type=Path, metavar="TARGET")
    parser.add_argument(
        "--voxel",
        type=float,
        help="metres; the scale of everything (default: with --weights what they were trained with, else the "
        f"extent of the larger cloud / {VOXELS_PER_EXTENT}, at most {LARGEST_VOXEL})",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--weights", type=Path, metavar="W", help="learned descriptors: a .safetensors file of train.py"
    )
    which.add_argument("--descriptor", choices=["fpfh"], default="fpfh", help="one that needs no weights")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("registration"), help="default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same result (default: %(default)s)")
    return parser


def run(options: argparse.Namespace) -> Registration:
    """Read, register, write, report."""
    if options.out.exists() and not options.out.is_dir():
        raise InputError(f"{options.out}: --out is a file; name a folder")
    if options.seed < 0:
        raise InputError(f"--seed {options.seed} is negative; use 0 or more")
    start = perf_counter()
    source, target = read_cloud(options.source), read_cloud(options.target)
    for path, cloud in ((options.source, source), (options.target, target)):
        print(f"{path}: {len(cloud.points)} points, {cloud.dropped} rows dropped (NaN or infinite)")
    read = {"read": round(perf_counter() - start, 4)}
    descriptor = load_descriptor(options, source, target)
    print(f"voxel {descriptor.voxel:g} m{'' if options.voxel else ' (--voxel changes it)'}")
    registration = Registrar(descriptor).register(
        source.points, target.points, seed=options.seed, names=(str(options.source), str(options.target))
    )
    seconds = read | registration.seconds
    T = registration.T_target_source
    write_aligned(options.out / "aligned.ply", transform(T, source.points), target.points)
    result = {
        "source": str(options.source),
        "target": str(options.target),
        "registered": registration.registered,
        "confidence": registration.confidence,
        "reason": registration.reason,
        "T_target_source": T.tolist(),
        "inliers": registration.inliers,
        "overlap": registration.overlap,
        "rmse": registration.rmse,
        "points": {"source": len(source.points), "target": len(target.points)},
        "dropped": {"source": source.dropped, "target": target.dropped},
        "descriptor": descriptor.name,
        "voxel": descriptor.voxel,
        "seed": options.seed,
        "seconds": seconds,
        "version": version("pcreg"),
    }
    with replacing(options.out / "result.json") as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n")
    report(registration, seconds, options.out)
    return registration


def load_descriptor(options: argparse.Namespace, source: Cloud, target: Cloud) -> Descriptor:
    """The descriptor asked for, at the voxel size asked for or derived from the clouds."""
    if options.voxel is not None and not 0 < options.voxel < np.inf:
        raise InputError(f"--voxel {options.voxel:g} is no size; use a positive number of metres")
    if options.weights is not None:
        descriptor = FCGF.load(options.weights)
        if options.voxel not in (None, descriptor.voxel):
            raise InputError(
                f"--voxel {options.voxel:g}: {options.weights} was trained at {descriptor.voxel:g} m; "
                "leave --voxel out"
            )
        return descriptor
    print("descriptor: FPFH (no trained weights given)")
    if options.voxel is None:
        for path, cloud in ((options.source, source), (options.target, target)):
            if extent(cloud.points) == 0:
                raise InputError(f"{path}: holds no two points apart, so it has no scale; check the file")
    return FPFH(options.voxel or default_voxel(source.points, target.points))


def default_voxel(source: np.ndarray, target: np.ndarray) -> float:
    """The extent of the larger cloud / 120, to two digits, at most 0.3 m.

    About 0.025 m for an RGB-D fragment and 0.055 m for a room.
    """
    wanted = max(extent(source), extent(target)) / VOXELS_PER_EXTENT
    return min(float(f"{wanted:.2g}"), LARGEST_VOXEL)


def extent(points: np.ndarray) -> float:
    """The diagonal of the box that holds the middle 90 % of each coordinate: stray points do not count."""
    if len(points) == 0:
        return 0.0
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    return float(np.linalg.norm(high - low))


def write_aligned(path: Path, moved: np.ndarray, target: np.ndarray) -> None:
    palette = (np.stack([SOURCE, TARGET]) * 255).astype(np.uint8)
    colors = np.repeat(palette, [len(moved), len(target)], axis=0)
    write_ply(path, np.concatenate([moved, target]), colors)


def report(registration: Registration, seconds: dict[str, float], out: Path) -> None:
    rows = ",\n ".join(
        f"[{', '.join(f'{value: .9f}' for value in row)}]" for row in registration.T_target_source
    )
    print(f"\nT_target_source =\n[{rows}]\n")
    verdict = "registered" if registration.registered else "NOT registered"
    print(f"{verdict}, confidence {registration.confidence:.2f}: {registration.reason}")
    steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
    print(f"seconds: {steps}; total {sum(seconds.values()):.2f}")
    print(f"written: {out / 'result.json'}, {out / 'aligned.ply'}")


if __name__ == "__main__":
    sys.exit(main())
