"""How much of one scan another scan sees."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.se3 import transform

OVERLAP_DISTANCE = 1.5  # voxels: two thinned samples of one surface lie closer than that


def measured_overlap(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, distance: float
) -> float:
    """The fraction of source (N, 3), moved into target (M, 3), with a target point within `distance` metres.

    It depends on how the clouds are spaced: give both thinned alike. 0 if either is empty.
    """
    if len(source) == 0 or len(target) == 0:
        return 0.0
    moved = transform(T_target_source, source)
    nearest, _ = cKDTree(target).query(moved, distance_upper_bound=distance)
    return float(np.isfinite(nearest).mean())
