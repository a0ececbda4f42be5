"""Own scans: a folder of point clouds, with `poses.txt`, `pairs.txt`, or neither."""

import hashlib
import logging
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from pcreg.datasets.odometry import SCANS_IN_MEMORY, Odometry, far_middle
from pcreg.features.pretrained import MIN_OUTDOOR_VOXEL
from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.se3 import inverse, rigid, translation
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import SUFFIXES, natural, read_cloud
from pcreg.io.motion import read_poses
from pcreg.io.pairs import Pair, evenly
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.progress import progress

log = logging.getLogger(__name__)

Listed = tuple[str, str, np.ndarray]  # source, target and T_target_source

SPLITS = ("all", "train", "held_out")
LISTS = (".txt", ".csv")  # formats of clouds, but in such a folder these files are lists and notes


class Folder:
    """Pairs of the clouds in the folder `root`; a cloud's name is its file name.

    `poses.txt` has a line per cloud in natural order (scan_2 before scan_10). `pairs.txt` has lines `source
    target`, optionally with the 16 numbers of T_target_source; for other lines T comes from poses.txt.
    Without pairs.txt each scan is paired with its `neighbours` nearest scans, the later scan as source, and
    pairs with `minimum_overlap` or more are kept. Without either file odometry, kept under `cache`,
    finds the poses of consecutive scans with the sensor at the origin; pairs that fit poorly are dropped.

    No cloud is read before `pairs` is used; `columns` is that of `read_cloud`. Raises InputError for a
    missing folder, for lists that do not fit the clouds, and if no pair is left. configs/data/folder.yaml
    explains the other settings, and the command line checks their bounds.
    """

    name = "own scans"
    left_out = ()
    viewpoint = "auto"

    def __init__(
        self,
        root: str | Path,
        voxel: PositiveFloat = 0.05,
        minimum_overlap: float = 0.3,
        neighbours: PositiveInt = 10,
        minimum_distance: NonNegativeFloat = 0.0,
        maximum_distance: PositiveFloat | None = None,
        proposals: PositiveInt | None = None,
        split: str = "all",
        held_out: float = 0.25,
        cache: str | Path | None = None,
        columns: int | None = None,
    ):
        self.root, self.voxel, self.columns = Path(root), voxel, columns
        self.minimum_overlap, self.neighbours, self.proposals = minimum_overlap, neighbours, proposals
        self.distances = minimum_distance, np.inf if maximum_distance is None else maximum_distance
        if minimum_distance > self.distances[1]:
            raise InputError(f"data.maximum_distance={maximum_distance:g}: give {minimum_distance:g} or more")
        if not self.root.is_dir():
            raise InputError(f"{root}: no such folder; name the one that holds your scans")
        suffixes = [suffix for suffix in SUFFIXES if suffix not in LISTS]
        clouds = (path.name for path in self.root.iterdir() if path.suffix.lower() in suffixes)
        self.names = sorted(clouds, key=natural)
        self._number = {name: n for n, name in enumerate(self.names)}
        if len(self.names) < 2:
            raise InputError(
                f"{root}: holds {len(self.names)} point clouds and a pair needs two; "
                f"they end in {' '.join(suffixes)}"
            )
        self.scans = split_rows(len(self.names), split, held_out)
        self.cache = Path(cache) if cache else self.root / "odometry"
        self.poses = self._read_poses()
        if self.poses is None and not (self.root / "pairs.txt").is_file():
            self.name = "own scans by odometry"

    @cached_property
    def fingerprint(self) -> str:
        """Number and bytes of clouds; checksum of names, sizes, times and `columns`."""
        stats = [(self.root / name).stat() for name in self.names]
        about = [(name, each.st_size, each.st_mtime_ns) for name, each in zip(self.names, stats, strict=True)]
        digest = hashlib.sha256(repr([self.columns, *about]).encode("utf-8", "surrogateescape")).hexdigest()
        return f"{len(about)} with {sum(each.st_size for each in stats)} bytes, {digest[:12]}"

    @property
    def outdoor(self) -> bool:
        """True for LiDAR scans, which are recognized by their voxel size."""
        return self.voxel >= MIN_OUTDOOR_VOXEL

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of pairs.txt, or else those that overlap by poses.txt or odometry."""
        if self._listed is not None:
            return self._with_overlap(self._listed)
        if self.poses is None:
            return self._registered()
        proposed = evenly(self._proposed(self.poses, self.scans), self.proposals)
        if not proposed:
            raise InputError(
                f"{self.root}: no two of its {len(self.scans)} scans are {self.distances[0]:g} to "
                f"{self.distances[1]:g} m apart by poses.txt, which is in metres; change "
                "data.minimum_distance or data.maximum_distance, or give more scans"
            )
        pairs = self._with_overlap([(self.names[i], self.names[j], self._motion(i, j)) for i, j in proposed])
        kept = [pair for pair in pairs if pair.overlap >= self.minimum_overlap]
        if not kept:
            best = max(pair.overlap for pair in pairs)
            raise InputError(
                f"{self.root}: none of {len(pairs)} pairs of near scans overlaps by "
                f"{self.minimum_overlap:g} (the best by {best:.2g}); check poses.txt, data.minimum_distance, "
                f"or try a larger data.voxel than {self.voxel:g} m"
            )
        return kept

    def keep_evenly(self, limit: int | None) -> None:
        """Keep at most `limit` pairs of pairs.txt; clouds of other pairs are not read."""
        if self._listed is not None:
            self._listed = evenly(self._listed, limit)

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of the file `name`, finite rows only."""
        return read_cloud(self.root / name, self.columns).points

    def _proposed(self, poses: np.ndarray, scans: range) -> list[tuple[int, int]]:
        """Pairs (source, target) of `scans` that are near each other."""
        near = nearby(poses[scans.start : scans.stop, :3, 3], self.neighbours, *self.distances)
        return [(scans.start + later, scans.start + earlier) for later, earlier in near]

    def _registered(self) -> list[Pair]:
        """Pairs of scans without poses whose registration by odometry is accepted."""
        odometry = Odometry(self.cache / "fits.jsonl", self.names, self.fingerprint, self.cloud, self.voxel)
        pieces = odometry.pieces(self.scans)
        proposed = [pair for piece in pieces for pair in self._proposed(odometry.poses, piece)]
        return odometry.pairs(evenly(proposed, self.proposals), self.minimum_overlap, self.root.name)

    def _read_poses(self) -> np.ndarray | None:
        path = self.root / "poses.txt"
        if not path.is_file():
            return None
        poses = read_poses(path)
        if len(poses) != len(self.names):
            raise InputError(
                f"{path}: has {len(poses)} poses for {len(self.names)} clouds in the folder; "
                "write one line per cloud, in the order of their names"
            )
        return poses

    def _motion(self, source: int, target: int) -> np.ndarray:
        return inverse(self.poses[target]) @ self.poses[source]

    @cached_property
    def _listed(self) -> list[Listed] | None:
        """The pairs of pairs.txt between scans of the split; None without this file."""
        path = self.root / "pairs.txt"
        if not path.is_file():
            return None
        names, listed, seen = {self.names[n] for n in self.scans}, [], set()
        for number, line in enumerate(path.read_text("utf-8-sig", "surrogateescape").splitlines(), 1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            usual = "a line is `source target`, then nothing or the 16 numbers of T_target_source"
            with refusing(f"{path}, line {number}: {{error}}; {usual}", ValueError):
                pair = self._pair(fields)
                if pair[:2] in seen:
                    raise ValueError("the pair is listed before")
                seen.add(pair[:2])
            if names.issuperset(pair[:2]):
                listed.append(pair)
        if not listed:
            raise InputError(
                f"{path}: lists no pair within the scans from {self.names[self.scans[0]]} to "
                f"{self.names[self.scans[-1]]}; add a line `source target`, remove the file, or change "
                "data.split and data.held_out"
            )
        return listed

    def _pair(self, fields: list[str]) -> Listed:
        names, numbers = fields[:2], fields[2:]
        for name in names:
            if name not in self._number:
                raise ValueError(f"{name} is no point cloud in the folder")
        if len(names) == 2 and names[0] == names[1]:
            raise ValueError("source and target are the same cloud")
        if len(fields) == 18:
            return *names, rigid(np.array(numbers, dtype=np.float64).reshape(4, 4))
        if len(fields) != 2:
            raise ValueError(f"{len(fields)} words")
        if self.poses is None:
            raise ValueError("no T_target_source, and the folder has no poses.txt to compute it from")
        return *names, self._motion(*(self._number[name] for name in names))

    def _with_overlap(self, listed: list[Listed]) -> list[Pair]:
        @lru_cache(SCANS_IN_MEMORY)
        def points(name: str) -> np.ndarray:
            if not len(cloud := self.cloud(name)):
                log.warning("%s: holds no points with finite coordinates, and overlaps no other", name)
            return cloud[voxel_downsample(cloud, self.voxel)]

        pairs = []
        for source, target, T in progress(listed, "overlap", len(listed), transient=True):
            overlap = measured_overlap(points(source), points(target), T, OVERLAP_DISTANCE * self.voxel)
            # Errors are measured near the clouds: 1000 km from the origin, 0.1 degrees are 2 km.
            middles = [far_middle(points(name)) for name in (source, target)]
            moves = tuple(map(translation, middles)) if np.any(middles) else None
            pairs.append(Pair(source, target, T, scene=self.root.name, overlap=overlap, moves=moves))
        return pairs


def nearby(
    positions: np.ndarray, neighbours: int, minimum_distance: float, maximum_distance: float = np.inf
) -> list[tuple[int, int]]:
    """Pairs (later, earlier) of each scan with `neighbours` others, by position.

    `positions` (F, 3) are in metres. The others are the nearest ones or, with a finite `maximum_distance`,
    spread evenly up to this distance.
    """
    found = set()
    for scan, position in enumerate(positions):
        distance = np.linalg.norm(positions - position, axis=1)
        within = (minimum_distance <= distance) & (distance <= maximum_distance)
        within[scan] = False
        rows = np.flatnonzero(within)
        nearest = rows[np.argsort(distance[rows], kind="stable")].tolist()
        others = nearest[:neighbours] if np.isinf(maximum_distance) else evenly(nearest, neighbours)
        found |= {(max(scan, other), min(scan, other)) for other in others}
    return sorted(found)


def split_rows(count: int, split: str, held_out: float) -> range:
    """Scans of a split: the last fraction `held_out` of all scans, the rest, or all.

    Neighbouring scans show the same place, so a split has consecutive scans, not random ones. Raises
    InputError for an unknown split, a fraction outside 0 to 1, and a split of fewer than two scans.
    """
    if split not in SPLITS:
        raise InputError(f"data.split={split}: unknown; choose one of {', '.join(SPLITS)}")
    if not 0 < held_out < 1:
        raise InputError(f"data.held_out={held_out:g}: a fraction of the scans is needed, such as 0.25")
    first = count - round(count * held_out)
    scans = {"all": range(count), "train": range(first), "held_out": range(first, count)}[split]
    if len(scans) < 2:
        raise InputError(
            f"data.split={split}: has {len(scans)} of {count} scans and a pair needs two; "
            f"change data.held_out={held_out:g}, or give more scans"
        )
    return scans
