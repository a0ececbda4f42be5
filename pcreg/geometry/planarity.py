"""Whether the points of a cloud lie on surfaces.

Noise fills space: its normals point anywhere, any two clouds of it overlap, and where a descriptor finds
matches between them these are of the outline of the clouds and of chance.
"""

import numpy as np
from scipy.spatial import cKDTree

NEIGHBORS = 30  # those that normals are taken from; see pcreg.geometry.normals
RADIUS = 3.0  # voxels
SAMPLE = 2_000  # points looked at, at most; a share of 0.05 is then known to 0.005
# Surface variation: points that fill space have 0.1 to 0.3, most of a simulated room below 0.04
PLANAR = 0.06
LEAST_PLANAR = 0.05  # of noise 0.005 are planar, of rooms 0.4 and more: one wall among leaves is enough


def has_surface(points: np.ndarray, voxel: float) -> bool:
    """Whether enough of the points (N, 3), one per cell of `voxel` metres, lie on planes."""
    return planar_share(points, voxel) >= LEAST_PLANAR


def planar_share(points: np.ndarray, voxel: float) -> float:
    """The share of points (N, 3), N > 0, with a surface variation below 0.06: nearly a plane."""
    asked = points[:: -(-len(points) // SAMPLE)]
    return float((surface_variation(asked, points, RADIUS * voxel) < PLANAR).mean())


def surface_variation(asked: np.ndarray, points: np.ndarray, radius: float) -> np.ndarray:
    """The surface variation (A,) of the points (N, 3) around those `asked` (A, 3), which are some of them.

    The least eigenvalue of the covariance of up to 30 neighbours within `radius` metres over the sum of all
    three (Pauly, Gross and Kobbelt, 2002): from 0, of a plane, to 1/3, of what is alike in all directions.
    """
    distance, rows = cKDTree(points).query(asked, NEIGHBORS, distance_upper_bound=radius)
    near = np.isfinite(distance)[:, :, None]  # (A, 30, 1)
    around = np.where(near, points[np.where(near[:, :, 0], rows, 0)] - asked[:, None], 0.0)
    spread = np.where(near, around - (around.sum(1) / near.sum(1))[:, None], 0.0)
    variances = np.linalg.eigvalsh(spread.transpose(0, 2, 1) @ spread)
    return variances[:, 0] / np.maximum(variances.sum(1), np.finfo(float).tiny)
