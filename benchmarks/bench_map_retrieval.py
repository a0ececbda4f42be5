"""Which pairs of scans `pcreg map` screens and registers first: cost, and recall of pairs that overlap.

    python benchmarks/bench_map_retrieval.py [100 300 1000]

The scans are fragments of simulated rooms, 15 to 30 of each, described by the shipped weights; of each number
the first so many. Recall is of the pairs of one room that share so many of the smaller one's cells of four
voxels. `pairs` are those that pcreg.mapping.retrieval has screened first, and `round` is the first round of
registrations that pcreg.mapping.proposal chooses. Seconds are of the clock, in one process.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch
from report import Report, Value, parser, run

from pcreg.datasets.simulated.indoor.recording import record
from pcreg.datasets.simulated.recording import OVERLAP_CELL, Recording, shared_cells
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.mapping.growing_map import ROUND_PAIRS
from pcreg.mapping.proposal import probability_of, propose
from pcreg.mapping.retrieval import Retrieval
from pcreg.registration.matching.screening import Sketch, screen
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar

SEED = 3_000_000  # trainings count scenes from 0, other benchmarks from 1_000_000 and 2_000_000
FRAMES = 4  # of a fragment, half as many as training has: the images take most of the time
VOXEL = 0.05  # metres, what `pcreg map` chooses for most fragments of rooms
SENSOR = Viewpoint(np.zeros(3), known=True)
LITTLE, MUCH = 0.1, 0.3  # overlap, from which on a pair is hard, and from which on it is not


def main() -> None:
    options = parse()
    report = Report(torch.device("cpu"), None)
    start = time.perf_counter()
    sketches, overlap = described(max(options.scans))
    report.facts({"scans made and described in s": time.perf_counter() - start})
    report.section("retrieval", rows(sorted(options.scans), sketches, overlap))


def rows(numbers: list[int], sketches: list[Sketch], overlap: np.ndarray) -> Iterator[dict[str, Value]]:
    """A row for the first so many scans."""
    for n in numbers:
        start = time.perf_counter()
        pairs = Retrieval(sketches[:n]).candidates()
        retrieved = time.perf_counter()
        inliers = np.zeros((n, n), dtype=np.int64)
        for source, target in pairs:
            inliers[source, target] = inliers[target, source] = screen(sketches[source], sketches[target])
        screened = time.perf_counter()
        first = propose(probability_of(inliers), np.zeros((n, n)), max(ROUND_PAIRS, n // 4))
        proposed = time.perf_counter()
        shared = np.array([overlap[pair] for pair in pairs])
        truth = np.tril(overlap[:n, :n], -1)
        yield {
            "scans": n,
            "pairs": len(pairs),
            "of all %": 200 * len(pairs) / (n * (n - 1)),
            "recall over 30 %": _recall(shared, truth, MUCH, 1.0),
            "recall 10 to 30 %": _recall(shared, truth, LITTLE, MUCH),
            "retrieve_s": retrieved - start,
            "screen_s": screened - retrieved,
            "round": len(first),
            "of these overlap": int(sum(overlap[pair] >= LITTLE for pair in first)),
            "propose_s": proposed - screened,
        }


def described(count: int) -> tuple[list[Sketch], np.ndarray]:
    """So many fragments, described, and the overlap (count, count) of each with each; 0 with themselves."""
    scale = Registrar().at(VOXEL)
    sketches: list[Sketch] = []
    overlap = np.zeros((count, count))
    room = 0
    while (begin := len(sketches)) < count:
        made = record(SEED, room, frames=FRAMES)
        room += 1
        kept = Recording(made.clouds[: count - begin], made.T_world_cloud[: count - begin])
        shared = shared_cells(kept, OVERLAP_CELL * VOXEL)
        share = shared / np.minimum.outer(shared.diagonal(), shared.diagonal()).clip(min=1)
        np.fill_diagonal(share, 0.0)
        sketches += [_sketch(cloud.double().numpy(), scale) for cloud in kept.clouds]
        overlap[begin : len(sketches), begin : len(sketches)] = share
    return sketches, overlap


def _sketch(points: np.ndarray, scale: SingleScaleRegistrar) -> Sketch:
    return Sketch.of(scale.describe(points, viewpoint=SENSOR), scale.voxel)


def _recall(screened: np.ndarray, truth: np.ndarray, low: float, high: float) -> float | None:
    """The share of pairs with an overlap in a range that are screened; None if there are none."""
    found, all_of_them = (((low <= overlap) & (overlap <= high)).sum() for overlap in (screened, truth))
    return float(found / all_of_them) if all_of_them else None


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("scans", type=int, nargs="*", default=[100, 300, 1000], help="how many")
    return made.parse_args()


if __name__ == "__main__":
    run(main)
