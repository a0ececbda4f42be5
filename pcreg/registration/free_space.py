"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other looked straight through.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.geometry.se3 import inverse, transform

CELL = np.radians(2.0)  # of the range image: wide enough to hold a point of a thinned, near surface
MAX_QUERY_POINTS = 1_200  # points of a scan, at most, that are held against the view of another
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

        In each cell the nearest point counts, so that a scan fused from several views is not held against
        itself.
        """
        seen, distance = _cells(scan - origin)
        order = np.argsort(seen, kind="stable")
        cells, first = np.unique(seen[order], return_index=True)
        return View(origin, cells, np.minimum.reduceat(distance[order], first))

    def held_against(self, points: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
        """Of points (N, 3) those in a direction that was seen, and those of them in front of what was seen.

        That is: nearer by more than `margin` metres.
        """
        asked, distance = _cells(points - self.origin)
        place = np.minimum(np.searchsorted(self.cells, asked), len(self.cells) - 1)
        covered = self.cells[place] == asked
        return covered, covered & (distance < self.ranges[place] - margin)


def free_space_violation(points: np.ndarray, view: View, margin: float) -> float:
    """The fraction of points (N, 3) in front of the surface that a view shows in their direction.

    Points in directions that the view does not cover do not count; 0 if none does.
    """
    covered, in_front = view.held_against(points, margin)
    return float(in_front.sum() / max(covered.sum(), 1))


class FreeSpace:
    """What speaks against motions between two scans: points where the other sensor looked through."""

    def __init__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        margin: float,
        origins: tuple[np.ndarray, np.ndarray] = (ORIGIN, ORIGIN),
    ):
        """Of scans (N, 3) and (M, 3), points each, metres, by sensors that stood at the `origins`."""
        self.margin = margin
        self.views = [View.of(scan, origin) for scan, origin in zip((source, target), origins, strict=True)]
        self.asked = [scan[:: -(-len(scan) // MAX_QUERY_POINTS)] for scan in (source, target)]

    def __call__(self, T_target_source: np.ndarray) -> float:
        """The fraction of all points in free space of the other scan, both ways on average."""
        moved = (
            transform(T_target_source, self.asked[0]),
            transform(inverse(T_target_source), self.asked[1]),
        )
        return float(
            np.mean(
                [
                    view.held_against(points, self.margin)[1].mean()
                    for points, view in zip(moved, reversed(self.views), strict=True)
                ]
            )
        )


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = np.linalg.norm(points, axis=1)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL).astype(np.int64) for angle in (elevation, azimuth))
    return row * 1000 + column, distance
