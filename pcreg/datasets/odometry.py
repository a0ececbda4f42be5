"""Odometry for scans without poses: each is registered to the scan before it.

The path drifts, so the scans of a pair are registered again, from their poses. A rejected step cuts the path:
no pair is proposed across a cut. Each fit is computed once and kept in a file of records.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import inverse
from pcreg.geometry.voxel_size import middle_box
from pcreg.io.pairs import Pair
from pcreg.registration.strategy.gicp import Fit, Scan, register_from, small_gicp
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records, code_fingerprint

log = logging.getLogger(__name__)

MAX_CORRECTION = 3.0  # voxels by which registration may change the path's motion; 0.5 at most is usual
SCANS_IN_MEMORY = 64  # neighbours in a list are mostly neighbours in time
MAX_SENSOR_DISTANCE = 10.0  # extents of a cloud; an origin further from its middle is not the sensor
MAX_FAILED_NAMED = 5  # failed steps that a warning names; it only counts the others


class Odometry:
    """Motions between consecutive scans, whose points (N, 3) `cloud` reads by name.

    `fingerprint` identifies the content of the scans. All lengths are multiples of `voxel`, in metres. `path`
    is a file of records. Raises InputError if it holds records of other scans, settings or code.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        fingerprint: str,
        cloud: Callable[[str], np.ndarray],
        voxel: float,
    ):
        small_gicp()  # if it is missing, raise before anything is read
        self.names, self._cloud, self.voxel = names, cloud, voxel
        settings = {
            "scans": fingerprint,
            "voxel": voxel,
            "small_gicp": version("small_gicp"),
            "code": code_fingerprint("arrays.py", "geometry", "io", "registration", "datasets/odometry.py"),
        }
        remedy = f"delete {path.name} to compute it anew, or give another folder with data.cache="
        self._records = Records(path, settings, remedy)
        self._scan = lru_cache(SCANS_IN_MEMORY)(self._prepared)

    @cached_property
    def steps(self) -> list[Fit]:
        """Fits of scan n + 1 to scan n, started from the step before or from identity."""
        steps: list[Fit] = []
        numbers = range(1, len(self.names))
        for n in progress(numbers, "odometry", len(numbers), transient=True):
            before = np.eye(4) if not steps or steps[-1].rejection() else steps[-1].T_target_source
            steps.append(self._fit(n, n - 1, before, np.eye(4)))
        return steps

    @cached_property
    def poses(self) -> np.ndarray:
        """Poses (F, 4, 4) float64, in the frame of the first scan after the last cut."""
        poses = np.tile(np.eye(4), (len(self.names), 1, 1))
        for n, step in enumerate(self.steps, start=1):
            if not step.rejection():
                poses[n] = poses[n - 1] @ step.T_target_source
        return poses

    def pieces(self, scans: range) -> list[range]:
        """The parts of `scans` between two cuts; logs where the path is cut."""
        cuts = [n for n in scans[1:] if self.steps[n - 1].rejection()]
        if cuts:
            failed = [f"{self.names[n - 1]} to {self.names[n]}" for n in cuts]
            more = f" and {len(failed) - MAX_FAILED_NAMED} more" if len(failed) > MAX_FAILED_NAMED else ""
            log.warning(
                "odometry failed at %d of %d steps, across which no pair is made: %s%s",
                *(len(cuts), len(scans) - 1, ", ".join(failed[:MAX_FAILED_NAMED]), more),
            )
        ends = [scans.start, *cuts, scans.stop]
        return [range(*each) for each in pairwise(ends)]

    def pairs(self, proposed: list[tuple[int, int]], min_overlap: float, scene: str) -> list[Pair]:
        """Proposed (source, target) with an accepted registration; InputError if there are none."""
        kept, rejected = [], Counter[str]()
        for source, target in progress(proposed, "registering pairs", len(proposed), transient=True):
            found = self.pair(source, target)
            if reason := found.rejection(min_overlap, max_correction=MAX_CORRECTION * self.voxel):
                rejected[reason] += 1
            else:
                names = self.names[source], self.names[target]
                kept.append(Pair(*names, found.T_target_source, scene=scene, overlap=found.overlap))
        dropped = "".join(f"; {count} {reason}" for reason, count in rejected.most_common())
        log.info("%s: %d of %d pairs kept%s", scene, len(kept), len(proposed), dropped)
        if not proposed:
            raise InputError(
                f"{scene}: no two scans are as far apart as data.minimum_distance and data.maximum_distance "
                "ask: use more scans, or change these"
            )
        if not kept:
            raise InputError(
                f"{scene}: odometry leaves no pair of {len(proposed)} proposed{dropped}; it needs "
                "consecutive scans of one sensor: try a larger data.voxel or other data.minimum_distance and "
                "data.maximum_distance, or write poses.txt"
            )
        return kept

    def pair(self, source: int, target: int) -> Fit:
        """Fit of two scans of a piece from their poses; of consecutive scans, the step."""
        if source == target + 1:
            return replace(self.steps[target], correction=0.0)
        return self._fit(source, target, inverse(self.poses[target]) @ self.poses[source])

    def _fit(self, source: int, target: int, *guesses: np.ndarray) -> Fit:
        """Recorded fit, else that of the first accepted guess, else that of most overlap."""
        name = f"{self.names[source]}->{self.names[target]}"
        if (record := self._records.by_pair.get(name)) is None:
            best = register_from(self._scan(source), self._scan(target), *guesses)
            record = {"pair": name, **asdict(best), "T_target_source": best.T_target_source.tolist()}
            try:
                self._records.add(record)
            except OutputError as error:
                raise OutputError(f"{error}, here with data.cache=") from error
        T = np.array(record["T_target_source"])
        return Fit(T, record["overlap"], record["free_space_violation"], record["correction"])

    def _prepared(self, number: int) -> Scan:
        name = self.names[number]
        points = self._cloud(name)
        if far_middle(points).any():
            raise InputError(
                f"{name}: lies {np.linalg.norm(points.mean(0)):.3g} m from its origin, where odometry "
                "expects the sensor; if the scans share a frame already, write identities to poses.txt, and "
                "give data.minimum_distance=0"
            )
        return Scan(points, self.voxel, name)


def far_middle(points: np.ndarray) -> np.ndarray:
    """Middle (3,) of a cloud (N, 3) far from its origin, as in a map; else zeros."""
    low, high = middle_box(points) if len(points) else np.zeros((2, 3))
    middle = (low + high) / 2
    is_far = np.linalg.norm(middle) > MAX_SENSOR_DISTANCE * np.linalg.norm(high - low)
    return middle if is_far else np.zeros(3)
