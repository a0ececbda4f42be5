"""Compare the errors of registered motions with their covariances, on pairs whose truth is known.

    python benchmarks/bench_covariance.py simulated [--scenes 10]
    python benchmarks/bench_covariance.py 3dmatch ROOT
    python benchmarks/bench_covariance.py folder SCANS ... [--voxel 0.3]

A table of x^T C^-1 x over the pairs that `register` accepts and answers right, x being the error in the
tangent space of pcreg/registration/judge/covariance.py: of an honest covariance 6 on average, 5.3 in the
middle and 10.6 at 90 %; less says that it is too large. Errors of the truth count as errors of the motion.
Right is within 15 degrees and 0.3 m indoors, within 5 degrees and 2 m outdoors.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import parser, run
from rich.console import Console
from rich.progress import track
from scipy.spatial.transform import Rotation

from pcreg.datasets.folder import Folder
from pcreg.datasets.simulated import indoor, outdoor
from pcreg.datasets.simulated.recorded import Recorded
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.geometry.se3 import inverse
from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.training.judge.answers import Gate

INDOOR, OUTDOOR = Gate(15.0, 0.3), Gate(5.0, 2.0)
SEED = 3_000_000  # of scenes that nothing was trained or fitted on


def main() -> None:
    made = parser(__doc__)
    verbs = made.add_subparsers(required=True, dest="verb")
    simulated = verbs.add_parser("simulated")
    simulated.add_argument("--scenes", type=int, default=10, help="indoors and outdoors each")
    verbs.add_parser("3dmatch").add_argument("root", type=Path)
    folder = verbs.add_parser("folder")
    folder.add_argument("scans", type=Path, nargs="+")
    folder.add_argument("--voxel", type=float, default=0.3, help="metres, at which overlaps are measured")
    for each in verbs.choices.values():
        each.add_argument("--limit", type=int, default=40, help="pairs of each list, spread evenly")
    options = made.parse_args()
    print(f"{'pairs':>24} tried accepted right   mean median   90 %   metres degrees (medians of the error)")
    registrar = Registrar()
    for dataset, gate in _datasets(options):
        pairs = evenly([pair for pair in dataset.pairs if not pair.consecutive], options.limit)
        found = [
            (pair, _registered(registrar, dataset, pair))
            for pair in track(pairs, transient=True, console=Console(stderr=True))
        ]
        print(_row(dataset.name, found, gate), flush=True)


def _datasets(options: argparse.Namespace) -> Iterator[tuple[PairDataset, Gate]]:
    if options.verb == "simulated":
        for name, record, voxel, gate in (
            ("simulated indoor", indoor.record, 0.05, INDOOR),
            ("simulated outdoor", outdoor.record_by_two, 0.3, OUTDOOR),
        ):
            made = Recorded(record, voxel, SEED, options.scenes, per_scene=4, device="cpu")
            made.name = name
            yield made, gate
    elif options.verb == "3dmatch":
        for benchmark in ("3DMatch", "3DLoMatch"):
            yield ThreeDMatch(options.root, benchmark), INDOOR
    else:
        for root in options.scans:
            scans = Folder(root, options.voxel)
            scans.name = root.name
            yield scans, OUTDOOR


def _registered(registrar: Registrar, dataset: PairDataset, pair: Pair) -> Registration:
    source, target = (
        registrar.prepare(dataset.cloud(name), name=name, viewpoint="sensor")
        for name in (pair.source, pair.target)
    )
    return registrar.register(source, target)


def error(T: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """x (6,) with truth = T exp(x), to first order: radians, then metres."""
    off = inverse(T) @ truth
    return np.concatenate([Rotation.from_matrix(off[:3, :3]).as_rotvec(), off[:3, 3]])


def _row(name: str, found: list[tuple[Pair, Registration]], gate: Gate) -> str:
    accepted = [(pair.T_target_source, each) for pair, each in found if each.registered]
    right = [(truth, each) for truth, each in accepted if gate.accepts(each.T_target_source, truth)]
    line = f"{name:>24} {len(found):5} {len(accepted):8} {len(right):5}"
    if not right:
        return line
    x = np.array([error(each.T_target_source, truth) for truth, each in right])
    squared = np.array(
        [e @ np.linalg.solve(each.covariance, e) for e, (_, each) in zip(x, right, strict=True)]
    )
    metres, degrees = np.linalg.norm(x[:, 3:], axis=1), np.degrees(np.linalg.norm(x[:, :3], axis=1))
    return (
        f"{line} {squared.mean():6.1f} {np.median(squared):6.1f} {np.quantile(squared, 0.9):6.1f} "
        f"{np.median(metres):8.3f} {np.median(degrees):7.2f}"
    )


if __name__ == "__main__":
    run(main)
