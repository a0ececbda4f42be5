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

    def compare(self, points: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
        """Masks (N,) of points (N, 3): in a direction that was seen, and in front of what was seen there.

        In front is nearer to the sensor by more than `margin` metres.
        """
        queries, distance = _cells(points - self.origin)
        place = np.minimum(np.searchsorted(self.cells, queries), len(self.cells) - 1)
        covered = self.cells[place] == queries
        return covered, covered & (distance < self.ranges[place] - margin)


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
    compared = [view.compare(points, margin) for view in views]
    covered = sum(covered.sum() for covered, _ in compared)
    return float(sum(in_front.sum() for _, in_front in compared) / max(covered, 1))


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

    def max_violation(self, T_target_source: np.ndarray) -> float:
        """The larger of the fractions of both scans in free space of the other."""
        moved, seen = self._moved(T_target_source), self._seen(self.margin)[::-1]
        return max(
            free_space_violation(points, views, self.margin)
            for points, views in zip(moved, seen, strict=True)
        )

    def mean_contradiction(
        self, T_target_source: np.ndarray, touching: tuple[np.ndarray, np.ndarray]
    ) -> float:
        """How much of what the sensor of one scan sees of the other one it says is not there, mean of both.

        Of points in directions that the other sensor saw those count that are touched, masks (N,) and (M,),
        and those that are not and stand in its free space: the share of the latter. For them half of the
        margin will do. One of five points more is in free space, so that few points prove little; the mean
        is the geometric one.
        """
        moved, seen = self._moved(T_target_source), self._seen(self.margin / 2)[::-1]
        shares = []
        for points, views, touched in zip(moved, seen, touching, strict=True):
            compared = [view.compare(points, self.margin / 2) for view in views]
            covered, in_front = (np.any(masks, axis=0) for masks in zip(*compared, strict=True))
            against, confirmed = (in_front & ~touched).sum(), (covered & touched).sum()
            shares.append((against + 1) / (against + confirmed + 5))
        return float(np.sqrt(shares[0] * shares[1]))

    def _seen(self, margin: float) -> list[list[View]]:
        """The views of source and target; of one viewpoint they do not depend on the margin."""
        if all(viewpoint.ndim == 1 for viewpoint in self.viewpoints):
            margin = self.margin
        if margin not in self._views:
            both = zip(self.scans, self.viewpoints, strict=True)
            self._views[margin] = [views_of(scan, viewpoint, margin) for scan, viewpoint in both]
        return self._views[margin]

    def _moved(self, T_target_source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scans, each moved to the other."""
        source, target = self.scans
        return transform(T_target_source, source), transform(inverse(T_target_source), target)

    def _in_front(self, points: np.ndarray, motions: np.ndarray, views: Sequence[View]) -> np.ndarray:
        """The fractions (H,) of points (N, 3), moved, in front of what any of the views shows."""
        moved = points @ motions[:, :3, :3].transpose(0, 2, 1) + motions[:, None, :3, 3]
        in_front = [view.compare(moved.reshape(-1, 3), self.margin)[1] for view in views]
        return np.any(in_front, axis=0).reshape(-1, len(points)).mean(1)


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = lengths(points)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL_RADIANS).astype(np.int64) for angle in (elevation, azimuth))
    return row * 1000 + column, distance
