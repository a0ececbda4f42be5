"""Nearest points of a cloud: by a k-d tree on the CPU, by comparing all of them on a GPU."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.arrays.namespace import Array, is_on_host, like, to_host
from pcreg.runtime import parallel

FEW = {"leafsize": 64, "balanced_tree": False, "compact_nodes": False}  # built in two thirds of the time


class Index:
    """Nearest neighbours among points (M, 3) float64, metres, M >= 1; answers are on their device."""

    def __init__(self, points: Array, *, few: bool = False) -> None:
        """Index the points, for `few` queries if so: only the time depends on it."""
        self.points = points
        self._on_gpu = not is_on_host(points) and points.is_cuda
        if not self._on_gpu:
            self._tree = cKDTree(to_host(points), **(FEW if few else {}))

    def query(
        self, queries: Array, k: int | list[int] = 1, max_distance: float = np.inf
    ) -> tuple[Array, Array]:
        """Metres and rows of the k nearest points closer than `max_distance` to queries (Q, 3).

        Both (Q, k), nearest first, or (Q,) for k = 1: float64 and int64. Where there are fewer, the distance
        is inf and the row M.
        """
        if self._on_gpu:
            from pcreg.kernels.triton.points import k_nearest, nearest  # comes with builds for GPUs only

            if k == 1:
                return nearest.nearest_points(queries, self.points, max_distance)
            return k_nearest.k_nearest(queries, self.points, k, max_distance)
        distance, row = self._tree.query(
            to_host(queries),
            k,
            distance_upper_bound=max_distance,
            workers=parallel.cores_for(len(queries)),
        )
        return like(distance, self.points), like(row, self.points)

    def kth_distance(self, queries: Array, k: int, max_distance: float = np.inf) -> Array:
        """Metres (Q,) from queries (Q, 3) to the k-th nearest point; inf from `max_distance` on."""
        if self._on_gpu:
            from pcreg.kernels.triton.points import k_nearest

            return k_nearest.kth_distance(queries, self.points, k, max_distance)
        return self.query(queries, [k], max_distance)[0][:, 0]  # SciPy's, of the k-th alone
