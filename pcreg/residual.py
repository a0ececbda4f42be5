"""How far each point of a moved cloud lies from the other cloud."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry import transform

MOST_POINTS = 1_000_000  # of the target that are searched; more lie closer than anybody can see
FAR = np.array([0.78, 0.78, 0.78])  # the colour of what has no partner


def residuals(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, limit: float
) -> np.ndarray:
    """Metres (N,) from moved source (N, 3) to the nearest points of target (M, 3); inf from `limit` on."""
    tree = cKDTree(target[:: max(1, -(-len(target) // MOST_POINTS))])
    distance, _ = tree.query(transform(T_target_source, source), distance_upper_bound=limit)
    return distance


def residual_colors(distance: np.ndarray, limit: float) -> np.ndarray:
    """Colours (N, 3) in 0..1: from dark blue at 0 through green to yellow at `limit`, grey beyond."""
    from matplotlib import colormaps

    near = np.isfinite(distance)
    colors = np.tile(FAR, (len(distance), 1))
    colors[near] = colormaps["viridis"](distance[near] / limit)[:, :3]
    return colors
