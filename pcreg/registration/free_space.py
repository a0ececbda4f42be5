"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other looked straight through.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.geometry.se3 import inverse, transform
from pcreg.geometry.subsample import every_nth

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


def free_space_violation(points: np.ndarray, view: View, margin: float) -> float:
    """The fraction of points (N, 3) in front of the surface that a view shows in their direction.

    Points in directions that the view does not cover do not count; 0 if none does.
    """
    covered, in_front = view.compare(points, margin)
    return float(in_front.sum() / max(covered.sum(), 1))


def max_free_space_violation(
    source: np.ndarray,
    target: np.ndarray,
    T_target_source: np.ndarray,
    margin: float,
    origins: tuple[np.ndarray, np.ndarray] = (ORIGIN, ORIGIN),
) -> float:
    """The larger violation of the two scans (N, 3) and (M, 3), by sensors at the `origins`, each way."""
    return max(
        free_space_violation(transform(T_target_source, source), View.of(target, origins[1]), margin),
        free_space_violation(
            transform(inverse(T_target_source), target), View.of(source, origins[0]), margin
        ),
    )


class FreeSpace:
    """The mean violation of a motion between two scans, at some of their points: quick enough for RANSAC."""

    def __init__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        margin: float,
        origins: tuple[np.ndarray, np.ndarray] = (ORIGIN, ORIGIN),
    ):
        """Of scans (N, 3) and (M, 3) in metres, by sensors at the `origins`."""
        self.margin = margin
        self.views = [View.of(scan, origin) for scan, origin in zip((source, target), origins, strict=True)]
        self.queries = [every_nth(scan, MAX_QUERY_POINTS) for scan in (source, target)]

    def __call__(self, T_target_source: np.ndarray) -> float:
        """The fraction of points in free space of the other scan, mean of both ways."""
        source, target = self.queries
        to_target = self.views[1].compare(transform(T_target_source, source), self.margin)
        to_source = self.views[0].compare(transform(inverse(T_target_source), target), self.margin)
        return float(np.mean([in_front.mean() for _, in_front in (to_target, to_source)]))


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = np.linalg.norm(points, axis=1)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL_RADIANS).astype(np.int64) for angle in (elevation, azimuth))
    return row * 1000 + column, distance
