"""KITTI odometry: LiDAR scans of a car, in pairs about ten metres apart.

The pair lists are computed from the poses by FCGF's rule: train 0-5 has 1358 pairs, val 6-7 180,
test 8-10 555. Any sequence laid out in the same way can be read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from datasets.icp_truth import cached_icp
from datasets.poses import read_poses, rigid
from pcreg.cloud import read_cloud
from pcreg.errors import InputError
from pcreg.pair import Pair

TRUTHS = ("icp", "icp-fcgf-compat", "odometry")
WINDOW = 100  # frames in which a partner is sought, the first included
REMOVED = {(8, 15, 58)}  # left out by FCGF and all who followed


class Kitti:
    """Scan pairs of the odometry benchmark with their ground truth. Clouds are called 08/000014.

    truth `icp`: odometry moves the source, ICP corrects the moved scan: T = correction @ odometry.
    truth `icp-fcgf-compat`: T = odometry @ correction, the order in which FCGF and its followers
    multiply by mistake (FCGF issue 65); published tables stand on it, about 3 cm from the other.
    truth `odometry`: the poses as they are, about 25 cm from either.

    Corrections are computed when `pairs` is first asked for, about a second each, and kept under `cache`
    (default root/icp). Velodyne and camera are related by each sequence's own calib.txt. Raises
    InputError for scans, poses or calibration that are missing or damaged.
    """

    def __init__(
        self,
        root: str | Path,
        sequences: int | Sequence[int] = (8, 9, 10),
        distance: float = 10.0,
        truth: str = "icp",
        cache: str | Path | None = None,
    ):
        if truth not in TRUTHS:
            raise InputError(f"truth={truth}: unknown; choose one of {', '.join(TRUTHS)}")
        if not distance > 0:
            raise InputError(f"distance={distance}: scans of a pair are some metres apart; try distance=10")
        root = Path(root)
        self.cache = Path(cache) if cache else root / "icp"
        self.truth = truth
        self.distance = distance
        numbers = [sequences] if isinstance(sequences, int) else sequences
        self.drives = {f"{number:02d}": _drive(root, number) for number in numbers}

    @cached_property
    def pairs(self) -> list[Pair]:
        """Pairs in driving order; source is the earlier scan."""
        listed = [
            (sequence, source, target)
            for sequence, drive in self.drives.items()
            for source, target in distance_pairs(drive.positions, self.distance)
            if source != target and (int(sequence), source, target) not in REMOVED
        ]
        if self.truth != "odometry":
            console = Console(file=sys.stderr)
            listed = track(listed, "ground truth by ICP", console=console, transient=True)
        return [self._pair(*each) for each in listed]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of a scan: x forward, y left, z up, metres, finite rows only."""
        sequence, _, frame = name.partition("/")
        if sequence not in self.drives:
            raise InputError(
                f"{name}: sequence not loaded; name a scan such as {next(iter(self.drives))}/000000"
            )
        return read_cloud(self.drives[sequence].velodyne / f"{frame}.bin").points

    def _pair(self, sequence: str, source: int, target: int) -> Pair:
        names = f"{sequence}/{source:06d}", f"{sequence}/{target:06d}"
        T_target_source = self.drives[sequence].motion(source, target)
        if self.truth != "odometry":
            kept = self.cache / f"{sequence}_{source:06d}_{target:06d}.json"
            correction = cached_icp(kept, lambda: tuple(map(self.cloud, names)), T_target_source)
            in_order = (correction, T_target_source) if self.truth == "icp" else (T_target_source, correction)
            T_target_source = in_order[0] @ in_order[1]
        return Pair(*names, T_target_source, scene=sequence)


def distance_pairs(positions: np.ndarray, distance: float = 10.0) -> list[tuple[int, int]]:
    """Frames (first, partner) by FCGF's rule, from positions (F, 3) in metres.

    From the first frame c on, the partner is the last frame before one of the next 99 is first more
    than `distance` from c in a straight line; the next c follows the partner. Without such a frame
    c moves on by one and nothing is stored. A single jump beyond `distance` pairs c with itself.
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


@dataclass(frozen=True)
class _Drive:
    """One sequence: where its scans are and how the LiDAR moved."""

    velodyne: Path
    T_world_camera: np.ndarray  # (F, 4, 4) float64; the world is the first camera's frame
    T_camera_lidar: np.ndarray  # (4, 4) float64, Tr of calib.txt

    @property
    def positions(self) -> np.ndarray:
        return self.T_world_camera[:, :3, 3]

    def motion(self, source: int, target: int) -> np.ndarray:
        """T_target_source (4, 4) between two LiDAR scans: V^-1 P_target^-1 P_source V."""
        T_world_source, T_world_target = self.T_world_camera[[source, target]] @ self.T_camera_lidar
        return np.linalg.inv(T_world_target) @ T_world_source


def _drive(root: Path, number: int) -> _Drive:
    tree = root / "dataset" if (root / "dataset").is_dir() else root
    sequence, poses = tree / "sequences" / f"{number:02d}", tree / "poses" / f"{number:02d}.txt"
    for path in (poses, sequence / "calib.txt", sequence / "velodyne"):
        if not path.exists():
            raise InputError(
                f"{path}: not found; unpack KITTI odometry (velodyne, calibration, poses) under {root}, "
                "or name other sequences: data.sequences=[...]"
            )
    drive = _Drive(sequence / "velodyne", read_poses(poses), read_calibration(sequence / "calib.txt"))
    wanted = {f"{frame:06d}.bin" for frame in range(len(drive.T_world_camera))}
    found = {path.name for path in drive.velodyne.glob("*.bin")}
    if differing := sorted(wanted ^ found):
        state = "missing" if differing[0] in wanted else "a scan without a pose"
        raise InputError(
            f"{drive.velodyne / differing[0]}: {state} ({len(found)} scans, {len(wanted)} poses), "
            "and the pair list counts on every frame; unpack the sequence again"
        )
    return drive


def read_calibration(path: Path) -> np.ndarray:
    """Tr (4, 4) float64 of a calib.txt: LiDAR to left camera."""
    for line in path.read_text().splitlines():
        key, _, numbers = line.partition(":")
        if key.strip() == "Tr":
            try:
                return rigid(np.array(numbers.split(), dtype=np.float64).reshape(3, 4))
            except ValueError:
                break
    raise InputError(
        f"{path}: has no line `Tr:` of 12 numbers; take calib.txt from KITTI's odometry calibration"
    )
