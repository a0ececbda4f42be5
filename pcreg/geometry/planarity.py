"""Whether the points of a cloud lie on surfaces.

Noise fills space: its normals have random directions, any two clouds of it overlap, and descriptor matches
between them follow the outlines of the clouds and chance.
"""

from collections.abc import Callable

import numpy as np

from pcreg.geometry.normals import surface_variation
from pcreg.geometry.subsample import every_nth

RADIUS_VOXELS = 3.0
MAX_QUERY_POINTS = 2_000  # a fraction of 0.05 is then known to 0.005
# Surface variation: points that fill space have 0.1 to 0.3, most of a simulated room below 0.04
MAX_PLANAR_VARIATION = 0.06
# Of noise 0.005 are planar, of rooms 0.4 and more: one wall among leaves is enough
MIN_PLANAR_FRACTION = 0.05


Variation = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def has_surface(points: np.ndarray, voxel: float, variation: Variation = surface_variation) -> bool:
    """Whether enough of the points (N, 3), one per cell of `voxel` metres, lie on planes."""
    return planar_fraction(points, voxel, variation) >= MIN_PLANAR_FRACTION


def planar_fraction(points: np.ndarray, voxel: float, variation: Variation = surface_variation) -> float:
    """The fraction of points (N, 3), N > 0, with a surface `variation` below 0.06: nearly a plane."""
    queries = every_nth(points, MAX_QUERY_POINTS)
    return float((variation(queries, points, RADIUS_VOXELS * voxel) < MAX_PLANAR_VARIATION).mean())
