"""Maps of scans with poses: how many are placed, and which pairs are screened first.

python benchmarks/map.py placed /data/3dmatch/fragments/* [--together] [--shuffle 1] [--workers 2]
python benchmarks/map.py retrieval [100 300 1000]

placed     shuffled fragments of 3DMatch's layout, cloud_bin_N.ply with poses in cloud_bin_N.info.txt, each
           folder by itself or all as one: a row per map, and one for scans that belong to none. Placed is
           a scan within 0.2 m and 5 degrees of its pose, the map laid on the scan by which most are; a
           pair is wrong that is more than 0.3 m or 15 degrees off, or of two scenes. Seconds are of the
           clock, for the whole.
retrieval  fragments of simulated rooms, of each number the first so many: cost and recall of the pairs
           that are screened, and of the first round that is registered
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from report import Value, keep, parser, run

from pcreg import register_all
from pcreg.datasets.simulated.indoor.recording import record
from pcreg.datasets.simulated.recorded import OVERLAP_CELL, Recording, shared_cells
from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.mapping.growing_map import ROUND_PAIRS
from pcreg.mapping.map import Map, MapEdge
from pcreg.mapping.proposal import Retrieval, probability_of, propose
from pcreg.registration.matching.screening import Keypoints, screen
from pcreg.registration.registrar import Registrar

PLACED = 0.2, 5.0  # metres, degrees
WRONG = 0.3, 15.0
SEED = 3_000_000  # of rooms that no weights were trained on
FRAMES = 4  # of a fragment, half as many as in training: images take most of the time
VOXEL = 0.05  # metres
LITTLE, MUCH = 0.1, 0.3  # overlap from which on a pair is hard, and from which on it is not


def main() -> None:
    made, verbs = parser(__doc__, "placed", "retrieval")
    shuffled = verbs["placed"]
    shuffled.add_argument("scenes", type=Path, nargs="+")
    shuffled.add_argument("--together", action="store_true", help="the fragments of all scenes at once")
    shuffled.add_argument("--shuffle", type=int, default=1, help="a seed for the order")
    shuffled.add_argument("--workers", type=int, default=2)
    numbers = {"type": int, "nargs": "*", "default": [100, 300, 1000], "help": "how many"}
    verbs["retrieval"].add_argument("scans", **numbers)
    options = made.parse_args()
    rows = placed(options) if options.verb == "placed" else retrieval(sorted(options.scans))
    keep(rows, options.out / f"map-{options.verb}.json", "cpu")


def placed(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for scenes in [options.scenes] if options.together else [[scene] for scene in options.scenes]:
        paths = sorted(path for scene in scenes for path in scene.glob("cloud_bin_*.ply"))
        paths = [paths[n] for n in np.random.default_rng(options.shuffle).permutation(len(paths))]
        start = perf_counter()
        found = register_all(paths, workers=options.workers)
        yield from map_rows(found, paths, perf_counter() - start)


def map_rows(found: Map, paths: Sequence[Path], seconds: float) -> Iterator[dict[str, Value]]:
    """A row for each map, and for the scans that belong to none."""
    poses = np.array([np.loadtxt(path.with_suffix(".info.txt"), skiprows=1) for path in paths])
    for number in range(1, found.count + 1):
        members = found.scans(number)
        errors = _errors(found.T_map_scan[members], poses[members])
        own = [edge for edge in found.edges if edge.used and edge.source in members]
        scenes = Counter(paths[row].parent.name for row in members)
        yield {
            "map": number,
            "scans": len(members),
            "placed": int((errors < PLACED).all(1).sum()),
            "median m": np.median(errors[:, 0]),
            "median deg": np.median(errors[:, 1]),
            "pairs used": len(own),
            "wrong": sum(_is_wrong(edge, paths, poses) for edge in own),
            "tried, all": len(found.edges),
            "s": seconds,
            "of": " ".join(f"{n} {scene}" for scene, n in scenes.items()),
        }
    yield {"map": "none", "scans": len(found.alone)}


def _errors(T_map_scan: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Metres and degrees (n, 2) from poses, the map laid on the best scan."""
    laid = []
    for first, pose in zip(T_map_scan, poses, strict=True):
        true = first @ inverse(pose) @ poses
        laid.append(np.array([_off(T, each) for T, each in zip(T_map_scan, true, strict=True)]))
    return max(laid, key=lambda errors: ((errors < PLACED).all(1).sum(), -np.median(errors[:, 0])))


def _is_wrong(edge: MapEdge, paths: Sequence[Path], poses: np.ndarray) -> bool:
    if paths[edge.source].parent != paths[edge.target].parent or edge.T_target_source is None:
        return True
    true = inverse(poses[edge.target]) @ poses[edge.source]
    return any(np.greater(_off(edge.T_target_source, true), WRONG))


def _off(T: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    return translation_error(T, true), rotation_error(T, true)


def retrieval(numbers: list[int]) -> Iterator[dict[str, Value]]:
    scans, overlap = described(max(numbers))
    for n in numbers:
        start = perf_counter()
        pairs = Retrieval(scans[:n]).candidates()
        retrieved = perf_counter()
        inliers = np.zeros((n, n), dtype=np.int64)
        for source, target in pairs:
            inliers[source, target] = inliers[target, source] = screen(scans[source], scans[target])
        screened = perf_counter()
        first = propose(probability_of(inliers), np.zeros((n, n)), max(ROUND_PAIRS, n // 4))
        shared = np.array([overlap[pair] for pair in pairs])
        truth = np.tril(overlap[:n, :n], -1)
        yield {
            "scans": n,
            "pairs": len(pairs),
            "of all %": 200 * len(pairs) / (n * (n - 1)),
            "recall over 30 %": _recall(shared, truth, MUCH, 1.0),
            "recall 10 to 30 %": _recall(shared, truth, LITTLE, MUCH),
            "retrieve s": retrieved - start,
            "screen s": screened - retrieved,
            "round": len(first),
            "of these overlap": sum(overlap[pair] >= LITTLE for pair in first),
            "propose s": perf_counter() - screened,
        }


def described(count: int) -> tuple[list[Keypoints], np.ndarray]:
    """So many fragments for screening, and their overlaps (count, count)."""
    registrar = Registrar()
    descriptor = registrar.at(VOXEL).descriptor
    scans: list[Keypoints] = []
    overlap = np.zeros((count, count))
    room = 0
    while (begin := len(scans)) < count:
        made = record(SEED, room, frames=FRAMES)
        room += 1
        kept = Recording(made.clouds[: count - begin], made.T_world_cloud[: count - begin])
        shared = shared_cells(kept, OVERLAP_CELL * VOXEL)
        share = shared / np.minimum.outer(shared.diagonal(), shared.diagonal()).clip(min=1)
        np.fill_diagonal(share, 0.0)
        for cloud in kept.clouds:
            prepared = registrar.prepare(cloud, viewpoint="sensor")
            scans.append(Keypoints.of(prepared.at(descriptor), VOXEL))
        overlap[begin : len(scans), begin : len(scans)] = share
    return scans, overlap


def _recall(screened: np.ndarray, truth: np.ndarray, low: float, high: float) -> float | None:
    """The share of pairs with an overlap in a range that are screened; None if there are none."""
    found, every = (((low <= overlap) & (overlap <= high)).sum() for overlap in (screened, truth))
    return float(found / every) if every else None


if __name__ == "__main__":
    run(main)
