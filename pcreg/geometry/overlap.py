"""How much of one scan another scan sees."""

import numpy as np

from pcreg.geometry.nearest import distances_to

OVERLAP_DISTANCE = 1.5  # voxels: two downsampled scans of one surface have points closer than that


def measured_overlap(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, distance: float
) -> float:
    """The fraction of source (N, 3), moved into target (M, 3), with a target point within `distance` metres.

    It depends on how dense the clouds are: downsample both alike. 0 if either is empty.
    """
    if len(source) == 0 or len(target) == 0:
        return 0.0
    return float(np.isfinite(distances_to(target, source, T_target_source, distance)).mean())
