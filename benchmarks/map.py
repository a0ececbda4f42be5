"""Measure maps of scans with known poses: right scans and pairs, location, and screening.

python benchmarks/map.py placed /data/3dmatch/fragments/* /data/kitti/sequences/08 [--together]
    [--every 2] [--workers 2] [--folder FOLDER]
python benchmarks/map.py located /data/3dmatch/fragments/* [--every 2]
python benchmarks/map.py rooms FOLDER [--count 50] [--device cuda] [--workers 2]
python benchmarks/map.py retrieval FOLDER/fragments/* [--count 300 1000] [--workers 2]

placed     maps of shuffled scans: fragments in 3DMatch's layout, cloud_bin_N.ply with poses in
           cloud_bin_N.info.txt and the pair lists of 3DMatch and 3DLoMatch, or a sequence in KITTI's layout;
           each folder alone and, with --together, all as one. A scan is placed if the largest map has it
           within 0.2 m and 5 degrees of its pose; the map is aligned at the scan that places most. A used
           pair is wrong if it is more than 0.3 m or 15 degrees off, or of two scenes. Pairs of a list, and of
           LiDAR scans within 10 m of each other, are right if the poses of their map are within these bounds.
located    every n-th scan of a folder (--every) is fused by its pose into a map, in which others are located
rooms      writes fragments of simulated rooms that no weights were trained on, in 3DMatch's layout
retrieval  cost and recall of the pairs that are screened, and of those that are registered first, among the
           first --count fragments of such folders
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from report import Value, keep, make_parser, run
from scipy.sparse import csr_array
from scipy.spatial.transform import Rotation

from pcreg import register_all
from pcreg.datasets.kitti import read_calibration
from pcreg.datasets.simulated.indoor.recording import record
from pcreg.datasets.simulated.recorded import OVERLAP_CELL, Recording, overlaps, shared_cells
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.geometry.se3 import inverse, transform
from pcreg.io.cloud import natural, read_cloud, write_ply
from pcreg.io.motion import read_poses
from pcreg.mapping.growing_map import ROUND_PAIRS
from pcreg.mapping.map import Map, MapEdge
from pcreg.mapping.proposal import (
    PARTNER_ROUNDS,
    Values,
    candidates,
    matrix,
    partners_of_partners,
    probability_of,
    propose,
)
from pcreg.registration.matching.screening import Keypoints, screen
from pcreg.registration.registrar import Registrar
from pcreg.runtime.workers import executor_of, map_unordered

PLACED = 0.2, 5.0  # metres and degrees, of a scan
WRONG = 0.3, 15.0  # of a pair
NEAR = 10.0  # metres between LiDAR scans that are a pair
Named = tuple[Path, Path, np.ndarray]
SHUFFLE = 1  # seed of the order of scans in a map
SEED = 3_000_000  # of rooms that no weights were trained on
FRAMES = 4  # of a fragment, half as many as in training: images take most of the time
VOXEL = 0.05  # metres
LOW_OVERLAP, HIGH_OVERLAP = 0.1, 0.3  # pairs between both are hard, as in 3DLoMatch


def main() -> None:
    parser, verbs = make_parser(__doc__, *VERBS)
    for verb, every in (("placed", 1), ("located", 2)):
        verbs[verb].add_argument("scenes", type=Path, nargs="+")
        verbs[verb].add_argument("--every", type=int, default=every, help="(default: %(default)s)")
    verbs["placed"].add_argument("--together", action="store_true", help="all scenes at once, too")
    verbs["placed"].add_argument("--folder", type=Path, help="of descriptions and records that are kept")
    verbs["rooms"].add_argument("folder", type=Path)
    verbs["rooms"].add_argument("--device", default="cpu", help="makes the scenes: cpu, cuda or auto")
    verbs["rooms"].add_argument("--count", type=int, default=50, help="how many (default: %(default)s)")
    verbs["retrieval"].add_argument("scenes", type=Path, nargs="+")
    verbs["retrieval"].add_argument("--count", type=int, nargs="+", default=[300, 1000], help="fragments")
    for verb in ("placed", "rooms", "retrieval"):
        verbs[verb].add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    keep(VERBS[options.verb](options), options, f"map-{options.verb}", "cpu")


def placed(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    alone = [[scene] for scene in options.scenes]
    for scenes in [*alone, options.scenes] if options.together else alone:
        poses = {path: pose for scene in scenes for path, pose in poses_of(scene, options.every)}
        shuffled = np.random.default_rng(SHUFFLE).permutation(len(poses))
        paths = [list(poses)[n] for n in shuffled]
        folder = options.folder and options.folder / "-".join(scene.name for scene in scenes)
        start = perf_counter()
        found = register_all(paths, workers=options.workers, folder=folder)
        row = row_of(found, np.array([poses[path] for path in paths]), perf_counter() - start)
        if folder:
            found.save(folder)
        row |= shares(found, lists_of(scenes, poses))
        yield {"scene": scenes[0].name if len(scenes) == 1 else f"all {len(scenes)}"} | row


def poses_of(scene: Path, every: int = 1) -> list[tuple[Path, np.ndarray]]:
    """Every n-th scan of a folder, n being `every`, with its pose (4, 4)."""
    if not (velodyne := scene / "velodyne").is_dir():
        paths = sorted(scene.glob("cloud_bin_*.ply"), key=lambda path: natural(path.name))[::every]
        return [(path, np.loadtxt(path.with_suffix(".info.txt"), skiprows=1)) for path in paths]
    T_world_camera = read_poses(scene.parents[1] / "poses" / f"{scene.name}.txt")
    T_world_scan = T_world_camera @ read_calibration(scene / "calib.txt")
    return [(velodyne / f"{n:06d}.bin", T) for n, T in enumerate(T_world_scan)][::every]


def lists_of(scenes: Sequence[Path], poses: dict[Path, np.ndarray]) -> dict[str, list[Named]]:
    """Pairs of scans with poses (source, target, T_target_source) by the name of their list."""
    lists: dict[str, list[Named]] = defaultdict(list)
    for scene in scenes:
        if (scene / "velodyne").is_dir():
            for source, target in combinations([path for path in poses if scene in path.parents], 2):
                T = inverse(poses[target]) @ poses[source]
                if np.linalg.norm(T[:3, 3]) < NEAR:
                    lists["LiDAR"].append((source, target, T))
            continue
        for name in ("3DMatch", "3DLoMatch") if (scene.parents[1] / "benchmarks").is_dir() else ():
            for pair in ThreeDMatch(scene.parents[1], name, scene.name).pairs:
                ends = [scene.parent / f"{end}.ply" for end in (pair.source, pair.target)]
                if poses.keys() >= set(ends):  # --every leaves out scans
                    lists[name].append((*ends, pair.T_target_source))
    return lists


def row_of(found: Map, poses: np.ndarray, seconds: float) -> dict[str, Value]:
    """A row about all pairs and the largest map of each scene, compared with poses (n, 4, 4)."""
    parents = np.array([str(Path(name).parent) for name in found.names])
    placed = [np.empty((0, 2))]
    for scene in np.unique(parents[found.number > 0]):
        of_scene = (parents == scene) & (found.number > 0)
        members = of_scene & (found.number == np.bincount(found.number[of_scene], minlength=1).argmax())
        placed.append(_errors(found.T_map_scan[members], poses[members]))
    errors = np.concatenate(placed)
    used = [edge for edge in found.edges if edge.used]
    return {
        "scans": len(found.names),
        "in maps": " ".join(str(len(found.scans(number))) for number in range(1, found.count + 1)),
        "alone": len(found.alone),
        "placed": int((errors < PLACED).all(1).sum()),
        "median m": np.median(errors[:, 0]),
        "median deg": np.median(errors[:, 1]),
        "pairs tried": len(found.edges),
        "used": len(used),
        "wrong": sum(_is_wrong(edge, found.names, poses) for edge in used),
        "s": seconds,
    }


def _errors(T_map_scan: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Metres and degrees (n, 2) between a map and poses, aligned at the scan that places most."""
    T_map_worlds = T_map_scan @ np.linalg.inv(poses)
    aligned = (_difference(T_map_scan, T_map_world @ poses) for T_map_world in T_map_worlds)
    return max(aligned, key=lambda errors: ((errors < PLACED).all(1).sum(), -np.median(errors[:, 0])))


def _is_wrong(edge: MapEdge, names: Sequence[str], poses: np.ndarray) -> bool:
    if Path(names[edge.source]).parent != Path(names[edge.target]).parent or edge.T_target_source is None:
        return True
    true = inverse(poses[edge.target]) @ poses[edge.source]
    return bool((_difference(edge.T_target_source, true) > WRONG).any())


def shares(found: Map, lists: dict[str, list[Named]]) -> dict[str, Value]:
    """Percentage of the pairs of each list that the poses of their map get right."""
    return {
        f"{name} %": 100 * float(np.mean([_is_right(found, pair) for pair in pairs]))
        for name, pairs in lists.items()
    }


def _is_right(found: Map, pair: Named) -> bool:
    """True if both scans are in one map, whose poses have the motion of the pair."""
    source, target = (found.names.index(str(path)) for path in pair[:2])
    T = inverse(found.T_map_scan[target]) @ found.T_map_scan[source]
    return bool(0 < found.number[source] == found.number[target] and (_difference(T, pair[2]) < WRONG).all())


def _difference(T: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Metres and degrees (..., 2) between motions (..., 4, 4)."""
    metres = np.linalg.norm((T - true)[..., :3, 3], axis=-1)
    R = T[..., :3, :3].swapaxes(-1, -2) @ true[..., :3, :3]
    return np.stack([metres, np.degrees(Rotation.from_matrix(R).magnitude())], axis=-1)


def located(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for scene in options.scenes:
        scans, registrar = poses_of(scene), Registrar()
        fused = [transform(pose, read_cloud(path).points) for path, pose in scans[:: options.every]]
        target = registrar.prepare(np.concatenate(fused), is_map=True)
        found, seconds = [], []
        for n, (path, pose) in enumerate(scans):
            if n % options.every:
                start = perf_counter()
                answer = registrar.register(registrar.prepare(path), target)
                seconds.append(perf_counter() - start)
                is_right = (_difference(answer.T_target_source, pose) < WRONG).all()
                found.append((answer.registered, is_right))
        registered, right = np.array(found).T
        yield {
            "map": f"{len(fused)} scans of {scene.name}",
            "scans": len(found),
            "right": int(right.sum()),
            "found": int((right & registered).sum()),
            "wrongly": int((registered & ~right).sum()),
            "s of the first": seconds[0],
            "s, median": np.median(seconds[1:]),
            "s, most": max(seconds[1:]),
        }


def rooms(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    with executor_of(options.workers) as executor:
        for number, recording in map_unordered(executor, _room, (options.device,), range(options.count)):
            scene = options.folder / "fragments" / f"room_{number}"
            for n, (cloud, pose) in enumerate(zip(recording.clouds, recording.T_world_cloud, strict=True)):
                write_ply(scene / f"cloud_bin_{n}.ply", cloud.numpy())
                np.savetxt(scene / f"cloud_bin_{n}.info.txt", pose, header=scene.name, comments="")
            yield {"room": scene.name, "fragments": len(recording.clouds)}


def _room(device: str, number: int) -> Recording:
    recording = record(SEED, number, device, frames=FRAMES)
    return replace(recording, clouds=[cloud.cpu() for cloud in recording.clouds])


def retrieval(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    scans, overlap = described(options.scenes, max(options.count), options.workers)
    for n in sorted(options.count):
        start = perf_counter()
        pairs, inliers = candidates(scans[:n]), Values()
        retrieved = perf_counter()
        _screen(scans, pairs, inliers)
        for _ in range(PARTNER_ROUNDS):
            pairs += (further := partners_of_partners(n, inliers))
            _screen(scans, further, inliers)
        screened = perf_counter()
        first = propose(probability_of(matrix(n, inliers)), csr_array((n, n)), max(ROUND_PAIRS, n))
        shared = np.array([overlap[pair] for pair in pairs])
        truth = np.tril(overlap[:n, :n], -1)
        yield {
            "scans": n,
            "pairs": len(pairs),
            "of all %": 200 * len(pairs) / (n * (n - 1)),
            "recall over 30 %": _recall(shared, truth, HIGH_OVERLAP, 1.0),
            "recall 10 to 30 %": _recall(shared, truth, LOW_OVERLAP, HIGH_OVERLAP),
            "retrieve s": retrieved - start,
            "screen s": screened - retrieved,
            "round": len(first),
            "of these overlap": sum(overlap[pair] >= LOW_OVERLAP for pair in first),
            "propose s": perf_counter() - screened,
        }


def _screen(scans: Sequence[Keypoints], pairs: Sequence[tuple[int, int]], inliers: Values) -> None:
    """Enter the number of consistent matches of each pair into `inliers`."""
    for a, b in pairs:
        inliers[a, b] = inliers[b, a] = screen(scans[a], scans[b])


def described(scenes: Sequence[Path], count: int, workers: int) -> tuple[list[Keypoints], np.ndarray]:
    """Describe the first `count` fragments for screening; returns their overlaps (count, count), too."""
    named = [(path, pose) for scene in scenes for path, pose in poses_of(scene)][:count]
    registrar, paths = Registrar(voxel=VOXEL), [path for path, _ in named]
    with executor_of(workers) as executor:
        keypoints = dict(map_unordered(executor, _keypoints, (registrar,), paths))
    overlap = np.zeros((len(named), len(named)))
    for scene in scenes:
        if not (own := [n for n, (path, _) in enumerate(named) if path.parent == scene]):
            continue
        clouds = [torch.from_numpy(read_cloud(named[n][0]).points) for n in own]
        shared = shared_cells(Recording(clouds, np.array([named[n][1] for n in own])), OVERLAP_CELL * VOXEL)
        overlap[np.ix_(own, own)] = overlaps(shared)
    return [keypoints[path] for path in paths], overlap


def _keypoints(registrar: Registrar, path: Path) -> Keypoints:
    cloud = registrar.prepare(path, viewpoint="sensor")
    return Keypoints.of(cloud.at(registrar.at(VOXEL).descriptor), VOXEL)


def _recall(screened: np.ndarray, truth: np.ndarray, low: float, high: float) -> float | None:
    """Fraction of the pairs with an overlap in a range that are screened; None if there are no pairs."""
    found, every = (((low <= overlap) & (overlap <= high)).sum() for overlap in (screened, truth))
    return float(found / every) if every else None


VERBS = {each.__name__: each for each in (placed, located, rooms, retrieval)}

if __name__ == "__main__":
    run(main)
