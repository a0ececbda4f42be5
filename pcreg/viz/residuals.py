"""Distances of the points of a moved cloud to the other cloud, and their colours."""

import numpy as np

from pcreg.arrays import every_nth
from pcreg.geometry.overlap import distances_to

MAX_TARGET_POINTS = 1_000_000  # searched; more would move no colour that a reader can see
NO_PARTNER_COLOR = np.array([0.78, 0.78, 0.78])
VIRIDIS = np.array(  # nine of its colours, evenly spaced; importing matplotlib for them takes half a second
    [
        (68, 1, 84),
        (71, 45, 123),
        (59, 82, 139),
        (44, 114, 142),
        (33, 145, 140),
        (40, 174, 128),
        (94, 201, 98),
        (173, 220, 48),
        (253, 231, 37),
    ]
)


def residuals(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, limit: float
) -> np.ndarray:
    """Metres (N,) from the moved source to the nearest target points; inf from `limit`."""
    return distances_to(every_nth(target, MAX_TARGET_POINTS), source, T_target_source, limit)


def residual_colors(distance: np.ndarray, limit: float) -> np.ndarray:
    """Colours (N, 3) in 0..1: viridis up to `limit`, grey beyond."""
    near = np.isfinite(distance)
    colors = np.tile(NO_PARTNER_COLOR, (len(distance), 1))
    steps = np.linspace(0, limit, len(VIRIDIS))
    colors[near] = np.stack([np.interp(distance[near], steps, band) for band in VIRIDIS.T], axis=1) / 255
    return colors
