"""Two clouds in, one Registration out: describe, match, estimate, refine, judge."""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from pcreg.descriptors import Description, Descriptor, thin
from pcreg.errors import InputError
from pcreg.freespace import intrusion
from pcreg.geometry import inverse, transform
from pcreg.matching import mutual
from pcreg.ransac import ransac
from pcreg.refine import Refinement, refine
from pcreg.verdict import judge

MINIMUM_POINTS = 30  # after thinning; fewer carry no shape that could be told from chance
SENSOR_REACH = 10.0  # cloud extents; see `viewpoint`

Sides = tuple[np.ndarray, np.ndarray]  # of the source and of the target


@dataclass(frozen=True)
class Registration:
    """The motion found, and whether to believe it."""

    T_target_source: np.ndarray  # (4, 4) float64, moves source into target; meaningless if not registered
    registered: bool
    confidence: float  # 0..1; at least 0.5 exactly when registered
    inliers: int  # matches that the motion brings together
    overlap: float  # fraction of the thinned source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    reason: str  # the verdict in words
    seconds: dict[str, float]  # by step


class Registrar:
    """Registers pairs of clouds with one descriptor.

    Every length is a multiple of the descriptor's voxel size. Raises InputError for a multiple or a
    number of iterations that is not positive.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        *,
        match_reach: float = 1.5,  # voxels: thinning leaves true partners up to this far apart
        overlap_reach: float = 1.0,  # voxels: a surface seen twice has a partner within one cell
        free_reach: float = 4.0,  # voxels: what stands further in front of a surface is not part of it
        attempts: int = 3,  # motions tried: a refused one is set aside together with its matches
        iterations: int = 1_000_000,  # samples of RANSAC: indoors 2 % of FPFH's matches may be right
    ) -> None:
        for name, value in (
            ("voxel", descriptor.voxel),
            ("match_reach", match_reach),
            ("overlap_reach", overlap_reach),
            ("free_reach", free_reach),
            ("attempts", attempts),
            ("iterations", iterations),
        ):
            if not value > 0:
                raise InputError(f"{name} is {value}; it must be positive")
        self.descriptor = descriptor
        self.match_distance = match_reach * descriptor.voxel
        self.overlap_distance = overlap_reach * descriptor.voxel
        self.free_distance = free_reach * descriptor.voxel
        self.attempts = attempts
        self.iterations = iterations

    def describe(self, points: np.ndarray, name: str = "cloud") -> Description:
        """Points and features of the cloud (N, 3) float64, `name` being what an error calls it.

        Raises InputError when too few points are left at this voxel size.
        """
        points = np.asarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise InputError(f"{name}: shape {points.shape} or values not finite; pass finite rows x y z")
        if len(points) == 0:
            raise InputError(f"{name}: holds no points; {MINIMUM_POINTS} or more are needed")
        origin = viewpoint(points)
        local = self.descriptor.describe(points - origin)
        if len(local.points) < MINIMUM_POINTS:
            raise InputError(f"{name}: {_too_few(points, len(local.points), self.descriptor.voxel)}")
        return Description(local.points + origin, local.features)

    def match(self, source: Description, target: Description) -> np.ndarray:
        """Index pairs (P, 2) int64 of points whose features are each other's nearest."""
        return mutual(source.features, target.features)

    def register(
        self,
        source: np.ndarray,
        target: np.ndarray,
        *,
        seed: int = 0,
        names: tuple[str, str] = ("source", "target"),
    ) -> Registration:
        """Register source (N, 3) to target (M, 3), each in metres in its own frame.

        A motion that is not believed is set aside with its matches and the next best is tried; the one
        with most confidence is returned.
        Same clouds and seed: same result. Raises InputError as `describe` does.
        """
        clock = _Clock()
        a, b = self.describe(source, names[0]), self.describe(target, names[1])
        clock.lap("describe")
        pairs = self.match(a, b)
        clock.lap("match")
        matched = a.points[pairs[:, 0]], b.points[pairs[:, 1]]
        surfaces = self._surface(source), self._surface(target)
        best = None
        left = np.ones(len(pairs), dtype=bool)
        for _ in range(self.attempts):
            estimate = ransac(
                *(side[left] for side in matched),
                distance=self.match_distance,
                iterations=self.iterations,
                seed=seed,
            )
            clock.lap("estimate")
            refined = refine(*surfaces, estimate.T_target_source, self.overlap_distance)
            clock.lap("refine")
            judged = self._judge(matched, surfaces, refined)
            clock.lap("judge")
            if best is None or judged.confidence > best.confidence:
                best = judged
            if best.registered:
                break
            left &= self._apart(matched, estimate.T_target_source) >= self.match_distance
        return replace(best, seconds=clock.seconds)

    def _judge(self, matched: Sides, surfaces: Sides, refined: Refinement) -> Registration:
        """What the matches, the surfaces and the free space say about a motion."""
        T = refined.T_target_source
        inliers = int((self._apart(matched, T) < self.match_distance).sum())
        shared = refined.overlap * len(surfaces[0]) / min(map(len, surfaces))
        verdict = judge(
            matches=len(matched[0]),
            inliers=inliers,
            overlap=min(shared, 1.0),
            intrusion=self._intrusion(*surfaces, T),
            rmse=refined.rmse,
        )
        return Registration(
            T,
            verdict.registered,
            verdict.confidence,
            inliers,
            refined.overlap,
            refined.rmse,
            verdict.reason,
            seconds={},
        )

    def _apart(self, matched: Sides, T_target_source: np.ndarray) -> np.ndarray:
        """The distance (P,) in metres between matched points after the motion."""
        return np.linalg.norm(transform(T_target_source, matched[0]) - matched[1], axis=1)

    def _surface(self, points: np.ndarray) -> np.ndarray:
        """The cloud (N, 3) thinned on cells that move with it, wherever its origin is."""
        return points[thin(points - points.min(0), self.descriptor.voxel)]

    def _intrusion(self, source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> float:
        """How much of either cloud stands where the sensor of the other looked through; 0 if unknown."""
        views = (
            (transform(T_target_source, source), target),
            (transform(inverse(T_target_source), target), source),
        )
        known = [view for view in views if not viewpoint(view[1]).any()]
        return max((intrusion(*view, self.free_distance) for view in known), default=0.0)


def viewpoint(points: np.ndarray) -> np.ndarray:
    """The place (3,) that becomes the origin before the cloud (N, 3) is described.

    Descriptors may take the origin for the sensor: normals point to it. It stays where it is when a
    sensor there could have seen the cloud, that is within 10 extents of its middle. Further away it
    is the origin of a map (UTM, a survey grid) and says nothing about the sensor; the middle of the
    cloud serves instead, which for rooms and streets lies on the open side of most surfaces.
    """
    low, high = points.min(0), points.max(0)
    middle = (low + high) / 2
    if np.linalg.norm(middle) <= SENSOR_REACH * np.linalg.norm(high - low):
        return np.zeros(3)
    return middle


def _too_few(points: np.ndarray, left: int, voxel: float) -> str:
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    found = f"{left} of {len(points)} points left at voxel {voxel:g} m (extent {extent:.3g} m)"
    if len(points) < MINIMUM_POINTS or extent == 0:
        return f"{found}, too few at any voxel size; a cloud needs {MINIMUM_POINTS} points apart"
    return f"{found}, {MINIMUM_POINTS} are needed; try a voxel of {extent / 100:.2g} m"


class _Clock:
    """Seconds by step, added up over the attempts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, step: str) -> None:
        now = perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self._last, 4)
        self._last = now
