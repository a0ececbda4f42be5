"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other's sensor looked straight through.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcreg.arrays import Array, every_nth, like, namespace, scatter_min, to_host
from pcreg.geometry.se3 import inverse, lengths, moved_by_each, transform
from pcreg.registration.judge.overlap import Overlap

MAX_VIEWS = 8  # of a cloud: those with most points
CELL_RADIANS = float(np.radians(2.0))  # of the range image: in a cell of a near surface lies a point
ROWS, COLUMNS = 92, 182  # of cells, from 46 below the horizon and 91 to one side on: room for rounding
UNSEEN = -1.0  # metres, of a cell in whose direction nothing was seen
MAX_QUERY_POINTS = 1_200  # of a scan, compared with the view of another
ORIGIN = np.zeros(3)


class Ranges(NamedTuple):
    """Ranges of points (...), and of what the sensor saw in their directions or UNSEEN; metres."""

    distance: Array
    seen: Array

    @property
    def covered(self) -> Array:
        """True (...) where the sensor saw something in the direction of the point."""
        return self.seen > UNSEEN

    def in_front(self, margin: float) -> Array:
        """True (...) for points nearer than what was seen by more than `margin` metres."""
        return self.distance < self.seen - margin


class View(NamedTuple):
    """Range image of a sensor: the nearest point in each direction."""

    origin: np.ndarray  # (3,) metres, where the sensor stood
    image: Array  # (ROWS * COLUMNS,) metres, or UNSEEN, by cells

    @staticmethod
    def of(scan: Array, origin: np.ndarray = ORIGIN) -> "View":
        """The view that a scan (N, 3), N > 0, is of: in each cell the nearest point counts."""
        xp = namespace(scan)
        cells, distance = _cells(scan - like(origin, scan))
        image = scatter_min(distance, cells, ROWS * COLUMNS)
        return View(origin, xp.where(image < np.inf, image, UNSEEN))

    def ranges(self, points: Array) -> Ranges:
        """Compare points (..., 3) with what was seen in their directions."""
        cells, distance = _cells(points - like(self.origin, points))
        return Ranges(distance, self.image[cells])


def views_of(scan: Array, viewpoint: Array, margin: float) -> list[View]:
    """The views that a scan (N, 3), N > 0, is of: one from a `viewpoint` (3,), or several from (N, 3).

    Viewpoints within a cell of `margin` metres are taken together, which the margin of the comparison allows
    for. Of more than eight such views those with most points are kept: the others contradict nothing.
    """
    viewpoint = to_host(viewpoint)
    if viewpoint.ndim == 1:
        return [View.of(scan, viewpoint)]
    _, place, counts = np.unique(
        np.floor(viewpoint / margin), axis=0, return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:MAX_VIEWS]
    masks = [place.ravel() == which for which in most]
    return [View.of(scan[like(mask, scan)], viewpoint[mask].mean(0)) for mask in masks]


def free_space_violation(points: Array, views: Sequence[View], margin: float) -> float:
    """The fraction of points (N, 3), of those that views cover, in front of the surface; 0 if none is."""
    in_front, covered = _violating_and_covered([view.ranges(points) for view in views], margin)
    return float(in_front / max(covered, 1))


class FreeSpace:
    """Mutual free space of two scans, by motion."""

    def __init__(
        self, source: Array, target: Array, margin: float, viewpoints: tuple[Array, Array] = (ORIGIN, ORIGIN)
    ) -> None:
        """Surfaces source (N, 3) and target (M, 3), N, M > 0, seen from their `viewpoints`.

        These are (3,) or a row for each point. Points further than `margin` metres in front of a surface are
        not part of it.
        """
        self.scans, self.margin, self.viewpoints = (source, target), margin, viewpoints
        self._some = [every_nth(scan, MAX_QUERY_POINTS) for scan in self.scans]
        self._views: dict[float, list[list[View]]] = {}

    def __call__(self, motions: np.ndarray) -> np.ndarray:
        """The fraction (H,) of some points in free space of the other scan, mean of both ways."""
        ways = motions, np.array([inverse(T) for T in motions])
        shares = []
        for points, way, views in zip(self._some, ways, self._seen(self.margin)[::-1], strict=True):
            moved, xp = moved_by_each(way, points), namespace(points)
            in_front = _any([view.ranges(moved).in_front(self.margin) for view in views])
            shares.append(xp.count_nonzero(in_front, axis=1) / len(points))
        return to_host(shares[0] + shares[1]) / 2

    def violation_and_contradiction(
        self, T_target_source: np.ndarray, overlap: Overlap
    ) -> tuple[float, float]:
        """The evidence of free space against a motion, under which the scans overlap like that.

        The violation is the larger of the fractions of both scans in free space of the other.

        The contradiction is how much of what the sensor of one scan sees of the other one it says is not
        there, geometric mean of both. Of points in directions that the other sensor saw those count that
        touch, and those that do not and stand in its free space by half of the margin: the share of the
        latter, (k + 1) / (n + 5) by Laplace smoothing.
        """
        target = self.scans[1]
        both = overlap.moved, transform(inverse(T_target_source), target)
        near, half = self._seen(self.margin / 2), self.margin / 2
        counts, xp = [], namespace(target)
        for points, views, close_views, touched in zip(
            both, self._seen(self.margin)[::-1], near[::-1], (overlap.touching, overlap.touched), strict=True
        ):
            ranges = close = [view.ranges(points) for view in views]
            if close_views is not views:
                close = [view.ranges(points) for view in close_views]
            against = _any([each.in_front(half) for each in close]) & ~touched
            confirmed = _any([each.covered for each in close]) & touched
            counts += [
                *_violating_and_covered(ranges, self.margin),
                *map(xp.count_nonzero, (against, confirmed)),
            ]
        counts = to_host(xp.stack([xp.asarray(count) for count in counts])).reshape(2, 4).tolist()
        violation = max(in_front / max(covered, 1) for in_front, covered, _, _ in counts)
        shares = [(against + 1) / (against + confirmed + 5) for _, _, against, confirmed in counts]
        return violation, float(np.sqrt(shares[0] * shares[1]))

    def _seen(self, margin: float) -> list[list[View]]:
        """The views of source and target; from one viewpoint they do not depend on the margin."""
        if all(viewpoint.ndim == 1 for viewpoint in self.viewpoints):
            margin = self.margin
        if margin not in self._views:
            both = zip(self.scans, self.viewpoints, strict=True)
            self._views[margin] = [views_of(scan, viewpoint, margin) for scan, viewpoint in both]
        return self._views[margin]


def _any(masks: Sequence[Array]) -> Array:
    """True where any of the masks (...) is."""
    found = masks[0]
    for mask in masks[1:]:
        found = found | mask
    return found


def _violating_and_covered(ranges: Sequence[Ranges], margin: float) -> tuple[Array, Array]:
    """Numbers of points in front of what was seen, and in directions that were, over all views."""
    xp = namespace(ranges[0].distance)
    in_front = sum(xp.count_nonzero(each.in_front(margin)) for each in ranges)
    return in_front, sum(xp.count_nonzero(each.covered) for each in ranges)


def _cells(points: Array) -> tuple[Array, Array]:
    """The cell (...) int64 of the range image and the range (...) of points (..., 3)."""
    xp, distance = namespace(points), lengths(points)
    azimuth = xp.atan2(points[..., 1], points[..., 0])
    elevation = xp.asin(points[..., 2] / xp.maximum(distance, 1e-9))
    row, column = (xp.astype(xp.floor(angle / CELL_RADIANS), xp.int64) for angle in (elevation, azimuth))
    return (row + ROWS // 2) * COLUMNS + column + COLUMNS // 2, distance
