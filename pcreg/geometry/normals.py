"""Normals of the surface that points were taken from."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.runtime import parallel

NEIGHBORS = 30


def normals_of(points: np.ndarray, radius: float) -> np.ndarray:
    """Unit normals (N, 3) of points (N, 3), of either sign: from up to 30 neighbours within `radius` m."""
    distance, rows = cKDTree(points).query(
        points, NEIGHBORS, distance_upper_bound=radius, workers=parallel.cores_for(len(points))
    )
    near = np.isfinite(distance)[:, :, None]  # (N, 30, 1)
    around = np.where(near, points[np.where(near[:, :, 0], rows, 0)] - points[:, None], 0.0)
    count = near.sum(1)  # (N, 1), its own point among them
    spread = np.where(near, around - (around.sum(1) / count)[:, None], 0.0)
    return np.linalg.eigh(spread.transpose(0, 2, 1) @ spread).eigenvectors[:, :, 0]


def towards(viewpoint: np.ndarray, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The normals (N, 3) of points (N, 3), turned to the side of `viewpoint` (3,)."""
    away = ((viewpoint - points) * normals).sum(1) < 0
    return np.where(away[:, None], -normals, normals)
