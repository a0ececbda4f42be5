"""Free space: a sensor that saw a surface saw nothing in front of it.

Two scans laid over each other by a wrong motion may share floors and walls, but then furniture of one
stands where the other looked straight through.
"""

import numpy as np

CELL = np.radians(2.0)  # of the range image: wide enough to hold a point of a thinned, near surface


def intrusion(points: np.ndarray, scan: np.ndarray, margin: float) -> float:
    """The fraction of points (N, 3) in front of the surface that `scan` (M, 3) shows in their direction.

    Both are in the frame of the scan's sensor, which stands at the origin. In each cell of a range
    image the nearest point of the scan counts, so that a scan fused from several views is not held
    against itself. A point intrudes if it is nearer by more than `margin` metres. Points in
    directions that the scan does not cover do not count; 0 if none does.
    """
    seen, nearest = _cells(scan)
    order = np.argsort(seen, kind="stable")
    cells, first = np.unique(seen[order], return_index=True)
    surface = np.minimum.reduceat(nearest[order], first)
    asked, distance = _cells(points)
    place = np.minimum(np.searchsorted(cells, asked), len(cells) - 1)
    covered = cells[place] == asked
    if not covered.any():
        return 0.0
    return float((distance[covered] < surface[place[covered]] - margin).mean())


def _cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell (N,) int64 of the range image and the range (N,) of each point."""
    distance = np.linalg.norm(points, axis=1)
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    elevation = np.arcsin(points[:, 2] / np.maximum(distance, 1e-9))
    row, column = (np.floor(angle / CELL).astype(np.int64) for angle in (elevation, azimuth))
    return row * 1000 + column, distance
