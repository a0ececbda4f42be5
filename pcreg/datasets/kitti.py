"""KITTI odometry: LiDAR scans of a car, in pairs about ten metres apart.

The pair lists are computed from the poses by FCGF's rule: train 0-5 has 1358 pairs, val 6-7 180,
test 8-10 555. Any sequence laid out in the same way can be read.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.geometry.se3 import rigid, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.io.motion import read_poses
from pcreg.io.pairs import Pair, evenly
from pcreg.runtime.errors import InputError, OutputError, refusing
from pcreg.runtime.extras import load_open3d
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records, code_fingerprint
from pcreg.runtime.workers import Workers, executor_of, map_unordered

TRUTHS = ("icp", "icp-fcgf-compat", "odometry")
DISTANCE = 10.0  # metres; scans further apart are not paired
WINDOW = 100  # frames in which a partner is searched, the first included
TEST = (8, 9, 10)
REMOVED = {(8, 15, 58)}  # left out by FCGF and its followers
MIN_SIZE = 0.4  # of the median size of a sequence's files; a smaller one is truncated, not sparse
POINT_BYTES = 16  # x y z reflectance, float32

# Settings of ICP as in FCGF: voxel size and largest distance of corresponding points in metres
ICP = {"method": "point to point", "voxel": 0.05, "distance": 0.2, "iterations": 200}
REMEDY = "name another folder with data.cache=FOLDER, or delete this file to compute it anew"


class Kitti:
    """Scan pairs of the odometry benchmark with their ground truth. Clouds are called 08/000014.

    truth `icp`: odometry moves the source, ICP corrects the moved scan: T = correction @ odometry.
    truth `icp-fcgf-compat`: T = odometry @ correction, the order in which FCGF and its followers
    multiply by mistake (FCGF issue 65); published tables use this truth, about 3 cm from `icp`.
    truth `odometry`: the poses as they are, about 25 cm from the other two.

    `workers` compute the corrections when `pairs` is first used, in about a second each; the folder `cache`
    (default root/icp) keeps them. Raises InputError for poses, calibration or scans that are missing or
    damaged; with `skip_broken` the pairs of such scans are `left_out`.
    """

    outdoor = True
    viewpoint = "sensor"

    def __init__(
        self,
        root: str | Path,
        sequences: int | Sequence[int] = TEST,
        distance: float = DISTANCE,
        truth: str = "icp",
        cache: str | Path | None = None,
        skip_broken: bool = False,
        workers: int | None = None,
    ):
        if truth not in TRUTHS:
            raise InputError(f"truth={truth}: unknown; choose one of {', '.join(TRUTHS)}")
        if not distance > 0:
            raise InputError(f"distance={distance}: scans of a pair are some metres apart; try distance=10")
        root = Path(root)
        self.cache = Path(cache) if cache else root / "icp"
        self.truth, self.workers = truth, workers
        numbers = (sequences,) if isinstance(sequences, int) else tuple(sequences)
        self.name = "KITTI" if numbers == TEST else f"KITTI {', '.join(f'{n:02d}' for n in numbers)}"
        # The name tells if pairs or ground truth differ from those of published figures.
        self.name += f", distance={distance:g}" if distance != DISTANCE else ""
        self.name += ", truth=odometry" if truth == "odometry" else ""
        self.drives = {f"{number:02d}": _Drive(root, number) for number in numbers}
        self._starts: list[Pair] = []  # pairs with the motions of odometry
        self.left_out: list[str] = []
        for sequence, drive in self.drives.items():
            broken = drive.broken_scans()
            for source, target in distance_pairs(drive.T_world_camera[:, :3, 3], distance):
                if source == target or (int(sequence), source, target) in REMOVED:
                    continue
                names = (f"{sequence}/{frame:06d}" for frame in (source, target))
                pair = Pair(*names, drive.motion(source, target), scene=sequence)
                if why := broken.get(source) or broken.get(target):
                    self.left_out.append(f"{pair.name} ({why})")
                else:
                    self._starts.append(pair)
        if self.left_out and not skip_broken:
            total = len(self.left_out) + len(self._starts)
            raise InputError(
                f"{root}: {len(self.left_out)} of {total} pairs cannot be read, the first being "
                f"{self.left_out[0]}; unpack these scans again, or do without their pairs: "
                "data.skip_broken=true"
            )

    @cached_property
    def pairs(self) -> list[Pair]:
        """Pairs in driving order; source is the earlier scan."""
        if self.truth == "odometry":
            return self._starts
        pairs = []
        found = corrections(self._starts, self.cloud, self.cache / "icp.jsonl", self.workers)
        for start, correction in zip(self._starts, found, strict=True):
            T = start.T_target_source
            corrected = correction @ T if self.truth == "icp" else T @ correction
            pairs.append(replace(start, T_target_source=corrected))
        return pairs

    def keep_evenly(self, limit: int | None) -> None:
        """Keep at most `limit` pairs; the corrections of the others are not computed."""
        self._starts = evenly(self._starts, limit)

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of a scan: x forward, y left, z up, metres, finite rows only."""
        sequence, _, frame = name.partition("/")
        if sequence not in self.drives:
            raise InputError(
                f"{name}: sequence not loaded; name a scan such as {next(iter(self.drives))}/000000"
            )
        return read_cloud(self.drives[sequence].velodyne / f"{frame}.bin").points


def icp(source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> np.ndarray:
    """Correction (4, 4) by ICP from source (N, 3), moved by T_target_source, to target."""
    open3d = load_open3d()
    registration = open3d.pipelines.registration
    moved = transform(T_target_source, source[voxel_downsample(source, ICP["voxel"])])
    target = target[voxel_downsample(target, ICP["voxel"])]
    return registration.registration_icp(
        *(open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points)) for points in (moved, target)),
        ICP["distance"],
        np.eye(4),
        registration.TransformationEstimationPointToPoint(),
        registration.ICPConvergenceCriteria(max_iteration=ICP["iterations"]),
    ).transformation


def corrections(
    starts: Sequence[Pair], cloud: Callable[[str], np.ndarray], path: Path, workers: Workers = None
) -> list[np.ndarray]:
    """Corrections (4, 4) of all pairs by `icp`, from the records in `path`.

    `workers` compute and record missing ones; `cloud` reads the points of a scan. Raises InputError for
    records of other code, settings or starts, and OutputError if a record cannot be written.
    """
    load_open3d()  # if it is missing, raise before anything is read
    settings = ICP | {
        "code": code_fingerprint("arrays.py", "geometry", "io", "datasets/kitti.py"),
        "open3d": version(packages_distributions()["open3d"][0]),  # builds of Open3D differ in their name
    }
    records = Records(path, settings, REMEDY)
    for start in starts:
        record = records.by_pair.get(start.name)
        if record and not np.allclose(record["start"], start.T_target_source, rtol=0, atol=1e-9):
            raise InputError(f"{path}: made from other poses or another calibration; {REMEDY}")
    todo = [start for start in starts if start.name not in records.by_pair]
    with executor_of(workers) as executor:
        computed = map_unordered(executor, _correct, (cloud,), todo)
        for _, record in progress(computed, "ground truth by ICP", len(todo)):
            try:
                records.add(record)
            except OutputError as error:
                raise OutputError(f"{error} with data.cache=FOLDER") from error
    return [np.array(records.by_pair[start.name]["correction"]) for start in starts]


def _correct(cloud: Callable[[str], np.ndarray], start: Pair) -> dict[str, Any]:
    correction = icp(cloud(start.source), cloud(start.target), start.T_target_source)
    return {"pair": start.name, "start": start.T_target_source.tolist(), "correction": correction.tolist()}


def distance_pairs(positions: np.ndarray, distance: float = DISTANCE) -> list[tuple[int, int]]:
    """Frames (first, partner) by FCGF's rule, from positions (F, 3) in metres.

    For a first frame c, find the first of the next 99 frames that is more than `distance` from c in a
    straight line: the partner is the frame before it, and the next c follows the partner. Without such a
    frame c moves on by one. If even the frame after c is beyond `distance`, c is paired with itself.
    """
    pairs, first = [], 0
    while first < len(positions):
        ahead = positions[first : first + WINDOW] - positions[first]
        beyond = np.flatnonzero(np.linalg.norm(ahead, axis=1) > distance)
        if len(beyond):
            partner = first + int(beyond[0]) - 1
            pairs.append((first, partner))
            first = partner
        first += 1
    return pairs


class _Drive:
    """One sequence: the folder of its scans, and the poses."""

    def __init__(self, root: Path, number: int):
        tree = root / "dataset" if (root / "dataset").is_dir() else root
        poses, sequence = tree / "poses" / f"{number:02d}.txt", tree / "sequences" / f"{number:02d}"
        calibration, self.velodyne = sequence / "calib.txt", sequence / "velodyne"
        for path in (poses, calibration, self.velodyne):
            if not path.exists():
                raise InputError(
                    f"{path}: not found; unpack KITTI odometry (velodyne, calibration, poses) under {root}, "
                    "or name other sequences: data.sequences=[...]"
                )
        self.T_world_camera = read_poses(poses)  # (F, 4, 4); the world is the first camera's frame
        self.T_camera_lidar = read_calibration(calibration)
        frames = {f"{frame:06d}.bin" for frame in range(len(self.T_world_camera))}
        if without := sorted({path.name for path in self.velodyne.glob("*.bin")} - frames):
            raise InputError(
                f"{self.velodyne / without[0]}: a scan without a pose ({len(frames)} poses), "
                "but the pair list needs a pose of every frame; unpack scans and poses again"
            )

    def broken_scans(self) -> dict[int, str]:
        """Frames whose scan is missing or truncated, with the file and the fault."""
        sizes = {path.name: path.stat().st_size for path in self.velodyne.glob("*.bin")}
        usual = float(np.median(list(sizes.values()))) if sizes else 0.0
        broken = {}
        for frame in range(len(self.T_world_camera)):
            path = self.velodyne / f"{frame:06d}.bin"
            size = sizes.get(path.name)
            if size is None:
                broken[frame] = f"{path} is missing"
            elif size % POINT_BYTES:
                broken[frame] = f"{path} is truncated: {size} bytes are not a whole number of points"
            elif size < MIN_SIZE * usual:
                points, others = size // POINT_BYTES, usual / POINT_BYTES
                broken[frame] = f"{path} is truncated: {points} points, where scans have about {others:.0f}"
        return broken

    def motion(self, source: int, target: int) -> np.ndarray:
        """T_target_source (4, 4) = V^-1 P_target^-1 P_source V, poses P, calibration V."""
        T_world_source, T_world_target = self.T_world_camera[[source, target]] @ self.T_camera_lidar
        return np.linalg.inv(T_world_target) @ T_world_source


def read_calibration(path: Path) -> np.ndarray:
    """Tr (4, 4) float64 of a calib.txt: LiDAR to left camera."""
    without = f"{path}: has no line `Tr:` of 12 numbers; take calib.txt from KITTI's odometry calibration"
    with refusing(without, KeyError, ValueError):
        lines = (line.partition(":") for line in path.read_text("utf-8", "replace").splitlines())
        numbers = {key.strip(): numbers for key, _, numbers in lines}["Tr"].split()
        return rigid(np.array(numbers, dtype=np.float64).reshape(3, 4))
