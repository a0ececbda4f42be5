"""Where scans without poses were taken: each is registered to the one before it.

A path of such steps drifts, and a step can fail. So a pair of scans along the path is registered again
by itself, from the guess that the path gives, and a step that is not believed cuts the path: no pair is
guessed across a cut. Everything is computed once and kept in a file of records, one per pair.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from pcreg.datasets.fit import Fit, Scan, register, small_gicp
from pcreg.geometry.se3 import inverse
from pcreg.geometry.voxel_size import middle_box
from pcreg.io.pairs import Pair
from pcreg.runtime.code_fingerprint import code_fingerprint
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.records import Records

MOST_MOVED = 3.0  # voxels from where the path has a pair; those of two LiDAR sequences moved by 0.5 at most
SCANS_IN_MEMORY = 64  # neighbours in a list are mostly neighbours in time
MAX_SENSOR_DISTANCE = 10.0  # cloud extents from its middle; further away the origin is that of a map
NAMED = 5  # failed steps; the others are counted


class Odometry:
    """Motions between consecutive scans, whose points (N, 3) `cloud` reads by name.

    `sizes` has their names, in order, and sizes in bytes, by which other scans are noticed. `voxel` in
    metres is the one length, see pcreg.datasets.fit. Records are kept in `path`; raises InputError if it
    holds those of other scans, settings or code.
    """

    def __init__(
        self, path: Path, sizes: Mapping[str, int], cloud: Callable[[str], np.ndarray], voxel: float
    ):
        small_gicp()  # refuse before anything is read
        self.names, self._cloud, self.voxel = list(sizes), cloud, voxel
        self._console = Console(file=sys.stderr, soft_wrap=True, highlight=False)
        scans = _digest(repr(list(sizes.items())).encode())
        settings = {
            "scans": f"{len(sizes)} with {sum(sizes.values())} bytes, {scans}",
            "voxel": voxel,
            "small_gicp": version("small_gicp"),
            "code": code_fingerprint(__name__),
        }
        remedy = f"delete {path.name} to compute it anew, or give another folder with data.cache="
        self._records = Records(path, settings, remedy)
        self._scan = lru_cache(SCANS_IN_MEMORY)(self._prepared)

    @cached_property
    def steps(self) -> list[Fit]:
        """Scan n + 1 to scan n, each from the motion of the step before, or from rest if that fails."""
        steps: list[Fit] = []
        numbers = range(1, len(self.names))
        for n in track(numbers, "odometry", console=self._console, transient=True):
            before = np.eye(4) if not steps or steps[-1].doubt() else steps[-1].T_target_source
            steps.append(self._fit(n, n - 1, before, np.eye(4)))
        return steps

    @cached_property
    def poses(self) -> np.ndarray:
        """(F, 4, 4) float64, each in the frame of the first scan since the last cut."""
        poses = np.tile(np.eye(4), (len(self.names), 1, 1))
        for n, step in enumerate(self.steps, start=1):
            if not step.doubt():
                poses[n] = poses[n - 1] @ step.T_target_source
        return poses

    def pieces(self, scans: range) -> list[range]:
        """Those of `scans` that lie between two cuts; says on stderr where the path is cut."""
        cuts = [n for n in scans[1:] if self.steps[n - 1].doubt()]
        if cuts:
            failed = [f"{self.names[n - 1]} to {self.names[n]}" for n in cuts]
            more = f" and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
            self._console.print(
                f"odometry failed at {len(cuts)} of {len(scans) - 1} steps, across which no pair is made: "
                f"{', '.join(failed[:NAMED])}{more}"
            )
        ends = [scans.start, *cuts, scans.stop]
        return [range(*each) for each in pairwise(ends)]

    def pairs(self, proposed: list[tuple[int, int]], least_overlap: float, scene: str) -> list[Pair]:
        """Those of the (source, target) scans proposed whose fit is believed; counts the others on stderr.

        Raises InputError if none is left.
        """
        kept, doubts = [], Counter[str]()
        for source, target in track(proposed, "registering pairs", console=self._console, transient=True):
            found = self.pair(source, target)
            if doubt := found.doubt(least_overlap, most_moved=MOST_MOVED * self.voxel):
                doubts[doubt] += 1
            else:
                names = self.names[source], self.names[target]
                kept.append(Pair(*names, found.T_target_source, scene=scene, overlap=found.overlap))
        dropped = "".join(f"; {count} {doubt}" for doubt, count in doubts.most_common())
        self._console.print(f"{scene}: {len(kept)} of {len(proposed)} pairs kept{dropped}")
        if not kept:
            raise InputError(
                f"{scene}: odometry leaves no pair of {len(proposed)} proposed{dropped}; it needs "
                "consecutive scans of one sensor: try a larger data.voxel or other data.minimum_distance and "
                "data.maximum_distance, or write poses.txt"
            )
        return kept

    def pair(self, source: int, target: int) -> Fit:
        """Two scans of one piece, registered by themselves; a step is what the path was made of."""
        if source == target + 1:
            return replace(self.steps[target], moved=0.0)
        return self._fit(source, target, inverse(self.poses[target]) @ self.poses[source])

    def _fit(self, source: int, target: int, *guesses: np.ndarray) -> Fit:
        """The fit on record, or from the first guess whose result is believed, or that overlaps most."""
        name = f"{self.names[source]}->{self.names[target]}"
        if (record := self._records.by_pair.get(name)) is None:
            fits: list[Fit] = []
            for guess in guesses:
                fits.append(register(self._scan(source), self._scan(target), guess))
                if not fits[-1].doubt():
                    break
            best = fits[-1] if not fits[-1].doubt() else max(fits, key=lambda each: each.overlap)
            record = {"pair": name, **asdict(best), "T_target_source": best.T_target_source.tolist()}
            try:
                self._records.add(record)
            except OutputError as error:
                raise OutputError(f"{error}, here with data.cache=") from error
        T = np.array(record["T_target_source"])
        return Fit(T, record["overlap"], record["free_space_violation"], record["moved"])

    def _prepared(self, number: int) -> Scan:
        name = self.names[number]
        points = self._cloud(name)
        if len(points) and _is_far(points):
            raise InputError(
                f"{name}: lies {np.linalg.norm(points.mean(0)):.3g} m from its origin, where odometry "
                "expects the sensor; if the scans share a frame already, write identities to poses.txt"
            )
        return Scan(points, self.voxel, name)


def _is_far(points: np.ndarray) -> bool:
    """Whether the cloud (N, 3) lies so far from its origin that no sensor there can have seen it."""
    low, high = middle_box(points)
    return bool(np.linalg.norm((low + high) / 2) > MAX_SENSOR_DISTANCE * np.linalg.norm(high - low))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
