"""Arrays on the CPU (NumPy) or on a GPU (torch), under one namespace.

Algorithms of geometry and registration are written once, over the namespace of the arrays that they get:

    xp = namespace(points)
    lowest = xp.min(points, axis=0)

Arrays with a row per point stay where they are. Motions, and whatever has a row per hypothesis, are NumPy
arrays on the host. Without a GPU torch is not imported. A device is named by a string: `cpu` means NumPy,
anything else torch.

Five primitives dispatch by device: nearest neighbours (`Index`), `scatter_min`, the direction of a normal,
the sum of an ICP step and the count of a consensus. NumPy and SciPy define them.
"""

from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from scipy.spatial import cKDTree

from pcreg.runtime import parallel

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor
FEW = {"leafsize": 64, "balanced_tree": False, "compact_nodes": False}  # built in two thirds of the time


def namespace(array: Array) -> Any:
    """Return the module with the functions of the array API standard for arrays of this kind."""
    return array_api_compat.array_namespace(array)


def is_on_host(array: Array) -> bool:
    """True for a NumPy array."""
    return isinstance(array, np.ndarray)


def to_device(array: Array, device: str) -> Array:
    """Return the array on a device: a NumPy array for `cpu`, else a tensor."""
    return to_host(array) if device == "cpu" else _tensor(array, device)


def like(array: Any, other: Array) -> Array:
    """Return the array, or nested sequence, as one of the kind and on the device of another one."""
    return to_host(array) if is_on_host(other) else _tensor(array, other.device)


def to_host(array: Any) -> np.ndarray:
    """Return the array as a NumPy array, after the device has computed it."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)


def take(array: Array, rows: Array, axis: int = 0) -> Array:
    """Return rows (M,) int64 of an array (N, ...), or columns along another axis, in C order."""
    if is_on_host(array):
        return array.take(rows, axis)
    return array.index_select(axis, rows)  # the namespace's has three launches more, for negative rows


def _tensor(array: Any, device: Any) -> Array:
    import torch

    if not isinstance(array, torch.Tensor):
        array = torch.from_numpy(np.ascontiguousarray(array))
    return array.to(device, non_blocking=True)


def every_nth(rows: Array, max_rows: int) -> Array:
    """Return every n-th of rows (N, ...), with the least n that leaves at most `max_rows`."""
    return rows[:: max(1, -(-len(rows) // max_rows))]


def scatter_min(values: Array, index: Array, size: int) -> Array:
    """Least of the values (...) float64 at each index (...) int64 below `size`: (size,), inf without one."""
    if is_on_host(values):
        least = np.full(size, np.inf)
        np.minimum.at(least, index, values)
        return least
    least = values.new_full((size,), np.inf)
    return least.scatter_reduce(0, index.reshape(-1), values.reshape(-1), "amin")


class Index:
    """Nearest neighbours among points (M, 3) float64, metres, M >= 1; answers are on their device."""

    def __init__(self, points: Array, *, few: bool = False) -> None:
        """Index the points. With `few` queries to come the tree is built faster and searched slower."""
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
