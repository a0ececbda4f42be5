"""How often odometry fails, and whether it says so: its motions against poses that are known.

    python benchmarks/bench_odometry.py SCANS [--voxel 0.3] [--every 1 2 3 4] [--pairs 80]

SCANS is a folder of clouds with poses.txt, which the odometry does not see. Left-out scans make the steps
longer. A motion is wrong when it is off by more than a voxel or 1.5 degrees; `rejected` are those that
pcreg.datasets.odometry rejects.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from report import parser, run

from pcreg.datasets.folder import Folder
from pcreg.datasets.odometry import MAX_CORRECTION, Fit, Odometry
from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.runtime.errors import InputError

DEGREES = 1.5
FARTHEST = 25  # scans between those of a pair
COLUMNS = "every  scans  s/scan | steps  wrong  rejected  both | pairs  wrong  rejected  both  s/pair | "
ERRORS = "error of pairs accepted: median, largest (m, deg)"


def main() -> None:
    made = parser(__doc__)
    made.add_argument("scans", type=Path)
    made.add_argument("--voxel", type=float, default=0.3, help="metres")
    made.add_argument("--every", type=int, nargs="+", default=[1, 2, 3, 4], help="take each n-th scan")
    made.add_argument("--pairs", type=int, default=80, help="drawn at random for every n")
    options = made.parse_args()
    folder = Folder(options.scans, options.voxel)
    if folder.poses is None:
        raise InputError(f"{options.scans}: has no poses.txt to compare with; write one")
    print(COLUMNS + ERRORS)
    for every in options.every:
        print(line(folder, every, options.pairs), flush=True)


def line(folder: Folder, every: int, count: int) -> str:
    """The table's line for each `every`-th scan and `count` pairs."""
    names, poses = folder.names[::every], folder.poses[::every]
    with tempfile.TemporaryDirectory() as temporary:
        odometry = Odometry(
            Path(temporary) / "fits.jsonl", dict.fromkeys(names, 0), folder.cloud, folder.voxel
        )
        start = perf_counter()
        steps = [(odometry.steps[n - 1], inverse(poses[n - 1]) @ poses[n]) for n in range(1, len(names))]
        per_scan = (perf_counter() - start) / len(names)
        drawn = draw([piece for piece in odometry.pieces(range(len(names))) if len(piece) > 1], count)
        start = perf_counter()
        pairs = [(odometry.pair(i, j), inverse(poses[j]) @ poses[i]) for i, j in drawn]
        per_pair = (perf_counter() - start) / max(len(pairs), 1)
    max_correction = MAX_CORRECTION * folder.voxel
    accepted = [error(*pair) for pair in pairs if not pair[0].rejection(max_correction=max_correction)]
    middle, largest = np.median(accepted, 0), np.max(accepted, 0)
    return (
        f"{every:5}  {len(names):5}  {per_scan:6.2f} | {counted(steps, np.inf, folder.voxel)} | "
        f"{counted(pairs, max_correction, folder.voxel)}  {per_pair:6.2f} | "
        f"{middle[0]:.3f} {middle[1]:.2f}, {largest[0]:.3f} {largest[1]:.2f}"
    )


def draw(pieces: list[range], count: int) -> list[tuple[int, int]]:
    """(source, target) scans within the pieces of a path, each scan as likely as another."""
    rng = np.random.default_rng(0)
    ends = [(n, min(piece.stop - 1, n + FARTHEST)) for piece in pieces for n in piece[:-1]]
    chosen = [ends[row] for row in rng.integers(len(ends), size=count)]
    return [(int(rng.integers(target, last)) + 1, target) for target, last in chosen]


def error(fit: Fit, T_true: np.ndarray) -> tuple[float, float]:
    return translation_error(fit.T_target_source, T_true), rotation_error(fit.T_target_source, T_true)


def counted(fits: list[tuple[Fit, np.ndarray]], max_correction: float, voxel: float) -> str:
    """How many there are, are wrong, are rejected, and are both."""
    errors = np.array([error(*each) for each in fits])
    wrong = (errors[:, 0] > voxel) | (errors[:, 1] > DEGREES)
    rejected = np.array([fit.rejection(max_correction=max_correction) != "" for fit, _ in fits])
    return f"{len(fits):5}  {wrong.sum():5}  {rejected.sum():8}  {(wrong & rejected).sum():4}"


if __name__ == "__main__":
    run(main)
