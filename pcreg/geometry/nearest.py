"""The nearest points of a cloud, searched on as many cores as pay; no answer depends on how many."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.se3 import transform
from pcreg.runtime import parallel


def nearest(points: np.ndarray, tree: cKDTree, max_distance: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """Metres (N,) from points (N, 3) to the nearest point of the tree, and the row (N,) of that.

    The distance is inf where no point of the tree is closer than `max_distance`.
    """
    return tree.query(points, distance_upper_bound=max_distance, workers=parallel.cores_for(len(points)))


def distances_to(
    target: np.ndarray, source: np.ndarray, T_target_source: np.ndarray, max_distance: float
) -> np.ndarray:
    """Metres (N,) from source (N, 3), moved, to the nearest of target (M, 3); inf from `max_distance` on."""
    tree = cKDTree(target, balanced_tree=False)
    return nearest(transform(T_target_source, source), tree, max_distance)[0]
