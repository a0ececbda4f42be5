"""Register pairs of scans whose motion is known: this package, Open3D's tutorial, and KISS-Matcher.

    python benchmarks/bench_registration.py [--threedmatch ROOT] [--indoor FOLDER ...]
                                            [--lidar FOLDER ...] [--limit 6] [--json FILE]

ROOT is 3DMatch as `pcreg evaluate` takes it; both lists, 3DMatch and 3DLoMatch, are measured. A FOLDER holds
scans with pairs.txt or poses.txt, as for data=folder (docs/own_data.md). All methods get the same pairs
and take turns. The others are given a voxel size, see KINDS; ours chooses its own.

    loose, strict    pairs whose errors lie within the gate, whatever the method itself says
    wrong accepted   pairs outside the loose gate that the method calls registered; KISS-Matcher does so
                     from five inliers on, Open3D's tutorial has no verdict
    right refused    pairs inside the loose gate that the method does not call registered
    s, s 90 %        seconds from raw points in memory to the motion: median and 90th percentile
    RTE m, RRE deg   medians over the pairs inside the loose gate
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from recipes import kiss, open3d_tutorial, open3d_wide, ours, tutorial_ransac
from report import Report, parser, run
from rich.console import Console
from rich.progress import track
from scores import Answer, Gates, record, rows

from pcreg.datasets.folder import Folder
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.runtime.errors import InputError

Recipe = Callable[..., Iterator[Answer]]


@dataclass(frozen=True)
class Kind:
    """A kind of scans."""

    gates: Gates  # which answers are right
    voxel: float  # metres; at which the overlap of pairs is measured
    others: tuple[tuple[Recipe, float], ...]  # with the voxel size that each is given, metres


KINDS = {
    "indoor": Kind(
        Gates(loose=(0.3, 15), strict=(0.1, 5)),
        voxel=0.05,
        others=((open3d_tutorial, 0.05), (open3d_wide, 0.025), (kiss, 0.05), (kiss, 0.025)),
    ),
    "lidar": Kind(
        Gates(loose=(2, 5), strict=(0.2, 1)),
        voxel=0.3,
        others=((open3d_tutorial, 0.3), (open3d_wide, 0.3), (kiss, 0.3)),
    ),
}


def main() -> None:
    options = parse()
    sets = list(named(options))  # all are looked at before anything takes minutes
    report = Report(torch.device("cpu"), options.json)
    report.content["settings"] = settings(options)
    print("\n".join(f"{key}: {value}" for key, value in report.content["settings"].items()))
    for n, (name, kind, data) in enumerate(sets):
        pairs, recipes = evenly(data.pairs, options.limit), recipes_for(kind)
        if n == 0:
            measure(data, pairs[:1], recipes, options.seed, "warm-up")
        records = measure(data, pairs, recipes, options.seed, name)
        report.content[f"{name}, every answer"] = records
        report.section(f"{name}: {kind.gates}", rows(records, kind.gates))


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """What figures depend on beside the data."""
    ransac = tutorial_ransac(voxel=1)
    return {
        "seed": options.seed,
        "pairs of each set": f"{options.limit} at most, spread evenly",
        "RANSAC of Open3D": f"{ransac.iterations} samples of {ransac.n} at most, confidence "
        f"{ransac.confidence:g}, distance {ransac.distance:g} voxels, edge length {ransac.edge_length:g}",
        "KISS-Matcher": "compared"
        if find_spec("kiss_matcher")
        else "left out, as it is not installed; type: pip install kiss-matcher",
    }


def named(options: argparse.Namespace) -> Iterator[tuple[str, Kind, PairDataset]]:
    """The data sets of the command line, each with its name and kind."""
    if options.threedmatch:
        for benchmark in ("3DMatch", "3DLoMatch"):
            yield benchmark, KINDS["indoor"], ThreeDMatch(options.threedmatch, benchmark)
    for name, kind in KINDS.items():
        for root in getattr(options, name):
            folder = Folder(root, kind.voxel)
            if folder.poses is None and not (root / "pairs.txt").is_file():
                raise InputError(f"{root}: has neither pairs.txt nor poses.txt to compare with; write one")
            yield str(root), kind, folder


def recipes_for(kind: Kind) -> list[Recipe]:
    missing = [] if find_spec("kiss_matcher") else [kiss]
    others = (partial(recipe, voxel=voxel) for recipe, voxel in kind.others if recipe not in missing)
    return [ours, partial(ours, descriptor="fpfh"), *others]


def measure(
    data: PairDataset, pairs: Sequence[Pair], recipes: Sequence[Recipe], seed: int, name: str
) -> list[dict[str, Any]]:
    """A record of every answer to every pair."""
    records = []
    for pair in track(pairs, name, console=Console(stderr=True), transient=True):
        clouds = data.cloud(pair.source), data.cloud(pair.target)
        for recipe in recipes:
            start = perf_counter()
            for answer in recipe(*clouds, seed=seed):
                records.append(record(pair, answer, perf_counter() - start))
    return records


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--threedmatch", type=Path, metavar="ROOT")
    made.add_argument("--indoor", type=Path, nargs="+", default=[], metavar="FOLDER")
    made.add_argument("--lidar", type=Path, nargs="+", default=[], metavar="FOLDER")
    made.add_argument("--limit", type=int, default=6, help="pairs of each set (default: %(default)s)")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--json", type=Path, metavar="FILE", help="the tables, and every answer")
    options = made.parse_args()
    if not (options.threedmatch or options.indoor or options.lidar):
        raise InputError("no scans are named; give --threedmatch, --indoor or --lidar")
    if options.limit < 1 or options.seed < 0:
        raise InputError(f"--limit {options.limit} --seed {options.seed}: give 1 or more, and 0 or more")
    return options


if __name__ == "__main__":
    run(main)
