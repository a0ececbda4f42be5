"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other looked straight through.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.geometry.se3 import inverse, lengths, transform
from pcreg.geometry.subsample import every_nth

MAX_VIEWS = 8  # of a cloud: those with most points
CELL_RADIANS = np.radians(2.0)  # of the range image: a cell of a near, downsampled surface has a point
MAX_QUERY_POINTS = 1_200  # of a scan, compared with the view of another
ORIGIN = np.zeros(3)


@dataclass(frozen=True)
class Look:
    """Towards points (N, 3), from where a sensor stood."""

    covered: np.ndarray  # (N,) bool: it saw something in that direction
    distance: np.ndarray  # (N,) metres, to the point
    seen: np.ndarray  # (N,) metres, to what it saw there; any number where it saw nothing

    def in_front(self, margin: float) -> np.ndarray:
        """Which points (N,) are nearer than what was seen by more than `margin` metres."""
        return self.covered & (self.distance < self.seen - margin)


@dataclass(frozen=True)
class View:
    """How far a sensor saw in each direction in which it saw anything."""

    origin: np.ndarray  # (3,) metres, where it stood
    cells: np.ndarray  # (C,) int64, ascending, of the range image
    ranges: np.ndarray  # (C,) metres

    @staticmethod
    def of(scan: np.ndarray, origin: np.ndarray = ORIGIN) -> "View":
        """The view that a scan (N, 3), N > 0, is of.

        In each cell the nearest point counts, so that a scan fused from several views does not contradict
        itself.
        """
        seen, distance = _cells(scan - origin)
        order = np.argsort(seen, kind="stable")
        cells, first = np.unique(seen[order], return_index=True)
        return View(origin, cells, np.minimum.reduceat(distance[order], first))

    def look(self, points: np.ndarray) -> Look:
        """Towards points (N, 3)."""
        queries, distance = _cells(points - self.origin)
        place = np.minimum(np.searchsorted(self.cells, queries), len(self.cells) - 1)
        return Look(self.cells[place] == queries, distance, self.ranges[place])


def views_of(scan: np.ndarray, viewpoint: np.ndarray, margin: float) -> list[View]:
    """The views that a scan (N, 3), N > 0, is of: one from a `viewpoint` (3,), or several from (N, 3).

    Viewpoints within a cell of `margin` metres are taken together, which the margin of the comparison allows
    for. Of more than eight such views those with most points are kept: the others contradict nothing.
    """
    if viewpoint.ndim == 1:
        return [View.of(scan, viewpoint)]
    _, place, counts = np.unique(
        np.floor(viewpoint / margin), axis=0, return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:MAX_VIEWS]
    masks = (place.ravel() == which for which in most)
    return [View.of(scan[mask], viewpoint[mask].mean(0)) for mask in masks]


def free_space_violation(points: np.ndarray, views: Sequence[View], margin: float) -> float:
    """The fraction of points (N, 3) in front of the surface that views show in their direction.

    Points in directions that a view does not cover do not count; 0 if none does.
    """
    return _violation([view.look(points) for view in views], margin)


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
        self, T_target_source: np.ndarray, moved: np.ndarray, touching: tuple[np.ndarray, np.ndarray]
    ) -> tuple[float, float]:
        """What speaks against a motion, which has `moved` (N, 3) the source.

        The violation is the larger of the fractions of both scans in free space of the other.

        The contradiction is how much of what the sensor of one scan sees of the other one it says is not
        there, mean of both. Of points in directions that the other sensor saw those count that are touched,
        masks (N,) and (M,), and those that are not and stand in its free space: the share of the latter. For
        them half of the margin will do. One of five points more is in free space, so that few points prove
        little; the mean is the geometric one.
        """
        looks = near = self._looks(T_target_source, moved, self.margin)
        if self._seen(self.margin / 2) is not self._seen(self.margin):
            near = self._looks(T_target_source, moved, self.margin / 2)
        shares = []
        for of_scan, touched in zip(near, touching, strict=True):
            covered = np.any([look.covered for look in of_scan], axis=0)
            in_front = np.any([look.in_front(self.margin / 2) for look in of_scan], axis=0)
            against, confirmed = (in_front & ~touched).sum(), (covered & touched).sum()
            shares.append((against + 1) / (against + confirmed + 5))
        violation = max(_violation(of_scan, self.margin) for of_scan in looks)
        return violation, float(np.sqrt(shares[0] * shares[1]))

    def _seen(self, margin: float) -> list[list[View]]:
        """The views of source and target; of one viewpoint they do not depend on the margin."""
        if all(viewpoint.ndim == 1 for viewpoint in self.viewpoints):
            margin = self.margin
        if margin not in self._views:
            both = zip(self.scans, self.viewpoints, strict=True)
            self._views[margin] = [views_of(scan, viewpoint, margin) for scan, viewpoint in both]
        return self._views[margin]

    def _looks(self, T_target_source: np.ndarray, moved: np.ndarray, margin: float) -> list[list[Look]]:
        """Towards the source from the views of the target, and the other way round."""
        (_, target), (of_source, of_target) = self.scans, self._seen(margin)
        back = transform(inverse(T_target_source), target)
        return [[view.look(moved) for view in of_target], [view.look(back) for view in of_source]]

    def _in_front(self, points: np.ndarray, motions: np.ndarray, views: Sequence[View]) -> np.ndarray:
        """The fractions (H,) of points (N, 3), moved, in front of what any of the views shows."""
        moved = points @ motions[:, :3, :3].transpose(0, 2, 1) + motions[:, None, :3, 3]
        in_front = [view.look(moved.reshape(-1, 3)).in_front(self.margin) for view in views]
        return np.any(in_front, axis=0).reshape(-1, len(points)).mean(1)


def _violation(looks: Sequence[Look], margin: float) -> float:
    """The fraction of points in front of what was seen, over all looks."""
    covered = sum(look.covered.sum() for look in looks)
    return float(sum(look.in_front(margin).sum() for look in looks) / max(covered, 1))


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = lengths(points)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL_RADIANS).astype(np.int64) for angle in (elevation, azimuth))
    return row * 1000 + column, distance
