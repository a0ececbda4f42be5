"""Distances between two clouds, and the overlap of one with the other."""

import numpy as np

from pcreg.arrays import Index
from pcreg.geometry.se3 import transform

OVERLAP_DISTANCE = 1.5  # voxels: two downsampled scans of one surface have points closer than that


def distances_to(
    target: np.ndarray, source: np.ndarray, T_target_source: np.ndarray, max_distance: float
) -> np.ndarray:
    """Metres (N,) from source (N, 3), moved, to the nearest of target (M, 3); inf from `max_distance` on."""
    return Index(target).query(transform(T_target_source, source), max_distance=max_distance)[0]


def measured_overlap(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, distance: float
) -> float:
    """Fraction of moved source (N, 3) with a point of target (M, 3) within `distance`.

    `distance` is in metres. Density changes the fraction: downsample both alike. 0 if either is empty.
    """
    if len(source) == 0 or len(target) == 0:
        return 0.0
    return float(np.isfinite(distances_to(target, source, T_target_source, distance)).mean())
