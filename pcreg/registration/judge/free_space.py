"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other looked straight through.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.geometry.se3 import inverse, lengths, transform
from pcreg.geometry.subsample import every_nth
from pcreg.registration.judge.overlap import Overlap

MAX_VIEWS = 8  # of a cloud: those with most points
CELL_RADIANS = np.radians(2.0)  # of the range image: a cell of a near, downsampled surface has a point
ROWS, COLUMNS = 92, 182  # of cells, from 46 below the horizon and 91 to one side on: room for rounding
UNSEEN = -1.0  # metres, of a cell in whose direction nothing was seen
MAX_QUERY_POINTS = 1_200  # of a scan, compared with the view of another
ORIGIN = np.zeros(3)


@dataclass(frozen=True)
class Look:
    """Towards points (N, 3), from where a sensor stood."""

    distance: np.ndarray  # (N,) metres, to the point
    seen: np.ndarray  # (N,) metres, to what it saw there, or UNSEEN

    @property
    def covered(self) -> np.ndarray:
        """In which of the directions (N,) it saw something."""
        return self.seen > UNSEEN

    def in_front(self, margin: float) -> np.ndarray:
        """Which points (N,) are nearer than what was seen by more than `margin` metres."""
        return self.distance < self.seen - margin


@dataclass(frozen=True)
class View:
    """How far a sensor saw in each direction: a range image."""

    origin: np.ndarray  # (3,) metres, where it stood
    ranges: np.ndarray  # (ROWS * COLUMNS,) metres, or UNSEEN, by cells

    @staticmethod
    def of(scan: np.ndarray, origin: np.ndarray = ORIGIN) -> "View":
        """The view that a scan (N, 3), N > 0, is of.

        In each cell the nearest point counts, so that a scan fused from several views does not contradict
        itself.
        """
        cells, distance = _cells(scan - origin)
        ranges = np.full(ROWS * COLUMNS, np.inf)
        np.minimum.at(ranges, cells, distance)
        ranges[np.isinf(ranges)] = UNSEEN
        return View(origin, ranges)

    def look(self, points: np.ndarray) -> Look:
        """Towards points (N, 3)."""
        cells, distance = _cells(points - self.origin)
        return Look(distance, self.ranges.take(cells))


def views_of(scan: np.ndarray, viewpoint: np.ndarray, margin: float) -> list[View]:
    """The views that a scan (N, 3), N > 0, is of: one from a `viewpoint` (3,), or several from (N, 3).

    Viewpoints within a cell of `margin` metres are taken together, which the margin of the comparison allows
    for. Of more than eight such views those with most points are kept: the others contradict nothing.
    """
    if viewpoint.ndim == 1:
        return [View.of(scan, viewpoint)]
    return [View.of(scan[mask], place) for mask, place in places_of(viewpoint, margin)]


def places_of(viewpoint: np.ndarray, margin: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The masks (N,) of the points that `views_of` takes together, and the mean (3,) of their viewpoints."""
    _, place, counts = np.unique(
        np.floor(viewpoint / margin), axis=0, return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:MAX_VIEWS]
    masks = [place.ravel() == which for which in most]
    return [(mask, viewpoint[mask].mean(0)) for mask in masks]


def free_space_violation(points: np.ndarray, views: Sequence[View], margin: float) -> float:
    """The fraction of points (N, 3) in front of the surface that views show in their direction.

    Points in directions that a view does not cover do not count; 0 if none does.
    """
    in_front, covered = _violating_and_covered([view.look(points) for view in views], margin)
    return in_front / max(covered, 1)


class FreeSpace:
    """What two scans say of each other's free space under a motion between them."""

    def __init__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        margin: float,
        viewpoints: tuple[np.ndarray, np.ndarray] = (ORIGIN, ORIGIN),
    ):
        """Of scans (N, 3) and (M, 3) in metres, seen from `viewpoints` as of `views_of`.

        Points further than `margin` metres in front of a surface are not part of it.
        """
        self.scans, self.margin, self.viewpoints = (source, target), margin, viewpoints
        self._some = [every_nth(scan, MAX_QUERY_POINTS) for scan in self.scans]
        self._views: dict[float, list[list[View]]] = {}

    def __call__(self, motions: np.ndarray) -> np.ndarray:
        """The fraction of points in free space of the other scan, mean of both ways: quick enough for RANSAC.

        Of motions (H, 4, 4), at some of the points: (H,).
        """
        back = np.array([inverse(T) for T in motions])
        (source, target), (of_source, of_target) = self._some, self._seen(self.margin)
        return (self._in_front(source, motions, of_target) + self._in_front(target, back, of_source)) / 2

    def violation_and_contradiction(
        self, T_target_source: np.ndarray, overlap: Overlap
    ) -> tuple[float, float]:
        """What speaks against a motion, under which the scans overlap like that.

        The violation is the larger of the fractions of both scans in free space of the other.

        The contradiction is how much of what the sensor of one scan sees of the other one it says is not
        there, mean of both. Of points in directions that the other sensor saw those count that touch, and
        those that do not and stand in its free space: the share of the latter. For them half of the margin
        will do. One of five points more is in free space, so that few points prove
        little; the mean is the geometric one.
        """
        counts = self._counts(T_target_source, overlap)
        violation = max(in_front / max(covered, 1) for in_front, covered, _, _ in counts)
        shares = [(against + 1) / (against + confirmed + 5) for _, _, against, confirmed in counts]
        return violation, float(np.sqrt(shares[0] * shares[1]))

    def _counts(self, T_target_source: np.ndarray, overlap: Overlap) -> list[list[int]]:
        """Counts over all views: points in front of what was seen, points in directions that were seen.

        Then the points that contradict the motion, and those that confirm it.
        """
        looks = near = self._looks(T_target_source, overlap.moved, self.margin)
        if self._seen(self.margin / 2) is not self._seen(self.margin):
            near = self._looks(T_target_source, overlap.moved, self.margin / 2)
        counts, touching = [], (overlap.touching, overlap.touched)
        for of_scan, close, touched in zip(looks, near, touching, strict=True):
            covered = np.logical_or.reduce([look.covered for look in close])
            in_front = np.logical_or.reduce([look.in_front(self.margin / 2) for look in close])
            found = _violating_and_covered(of_scan, self.margin)
            counts.append([*found, int((in_front & ~touched).sum()), int((covered & touched).sum())])
        return counts

    def _seen(self, margin: float) -> list[list[View]]:
        """The views of source and target; of one viewpoint they do not depend on the margin."""
        if all(viewpoint.ndim == 1 for viewpoint in self.viewpoints):
            margin = self.margin
        if margin not in self._views:
            both = zip(self.scans, self.viewpoints, strict=True)
            self._views[margin] = [self._views_of(scan, viewpoint, margin) for scan, viewpoint in both]
        return self._views[margin]

    def _views_of(self, scan: np.ndarray, viewpoint: np.ndarray, margin: float) -> list[View]:
        return views_of(scan, viewpoint, margin)

    def _looks(self, T_target_source: np.ndarray, moved: np.ndarray, margin: float) -> list[list[Look]]:
        """Towards the source from the views of the target, and the other way round."""
        (_, target), (of_source, of_target) = self.scans, self._seen(margin)
        back = transform(inverse(T_target_source), target)
        return [[view.look(moved) for view in of_target], [view.look(back) for view in of_source]]

    def _in_front(self, points: np.ndarray, motions: np.ndarray, views: Sequence[View]) -> np.ndarray:
        """The fractions (H,) of points (N, 3), moved, in front of what any of the views shows."""
        moved = points @ motions[:, :3, :3].transpose(0, 2, 1) + motions[:, None, :3, 3]
        in_front = [view.look(moved.reshape(-1, 3)).in_front(self.margin) for view in views]
        return np.logical_or.reduce(in_front).reshape(-1, len(points)).mean(1)


def _violating_and_covered(looks: Sequence[Look], margin: float) -> tuple[int, int]:
    """How many points are in front of what was seen, and in directions that were, over all looks."""
    in_front = sum(int(look.in_front(margin).sum()) for look in looks)
    return in_front, sum(int(look.covered.sum()) for look in looks)


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = lengths(points)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL_RADIANS).astype(np.int64) for angle in (elevation, azimuth))
    return (row + ROWS // 2) * COLUMNS + column + COLUMNS // 2, distance
