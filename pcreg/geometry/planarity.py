"""Whether the points of a cloud lie on surfaces.

Noise fills space: its normals have random directions, any two clouds of it overlap, and descriptor matches
between them follow the outlines of the clouds and chance.
"""

import numpy as np

from pcreg.geometry.normals import scatter_matrices
from pcreg.geometry.subsample import every_nth

RADIUS_VOXELS = 3.0
MAX_QUERY_POINTS = 2_000  # a fraction of 0.05 is then known to 0.005
# Surface variation: points that fill space have 0.1 to 0.3, most of a simulated room below 0.04
MAX_PLANAR_VARIATION = 0.06
# Of noise 0.005 are planar, of rooms 0.4 and more: one wall among leaves is enough
MIN_PLANAR_FRACTION = 0.05


def has_surface(points: np.ndarray, voxel: float) -> bool:
    """Whether enough of the points (N, 3), one per cell of `voxel` metres, lie on planes."""
    return planar_fraction(points, voxel) >= MIN_PLANAR_FRACTION


def planar_fraction(points: np.ndarray, voxel: float) -> float:
    """The fraction of points (N, 3), N > 0, with a surface variation below 0.06: nearly a plane."""
    queries = every_nth(points, MAX_QUERY_POINTS)
    return float((surface_variation(queries, points, RADIUS_VOXELS * voxel) < MAX_PLANAR_VARIATION).mean())


def surface_variation(queries: np.ndarray, points: np.ndarray, radius: float) -> np.ndarray:
    """The surface variation (Q,) around the `queries` (Q, 3), which are some of the points (N, 3).

    The least eigenvalue of the covariance of up to 30 neighbours within `radius` metres over the sum of all
    three (Pauly, Gross and Kobbelt, 2002): from 0, of a plane, to 1/3, of an isotropic distribution.
    """
    variances = np.linalg.eigvalsh(scatter_matrices(queries, points, radius))
    return variances[:, 0] / np.maximum(variances.sum(1), np.finfo(float).tiny)
