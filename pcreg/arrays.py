"""Arrays on the CPU (NumPy) or on a GPU (torch), under one namespace.

Algorithms of geometry and registration are written once, over the namespace of their input arrays:

    xp = namespace(points)
    lowest = xp.min(points, axis=0)

Arrays with a row per point stay on their device. Motions, and arrays with a row per hypothesis, are NumPy
arrays on the host. Without a GPU torch is not imported. A device is named by a string: `cpu` means NumPy,
anything else torch.

Five primitives dispatch by device: nearest neighbours (`Index`), `scatter_min`, the direction of a normal,
the sum of an ICP step and the count of a consensus. The versions in NumPy and SciPy are the reference.
"""

from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from scipy.spatial import cKDTree

from pcreg.runtime import parallel

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor
FEW = {"leafsize": 64, "balanced_tree": False, "compact_nodes": False}  # saves a third of the build


def namespace(array: Array) -> Any:
    """Return the module with the array API functions for this kind of array."""
    return array_api_compat.array_namespace(array)


def is_on_host(array: Array) -> bool:
    """True for a NumPy array."""
    return isinstance(array, np.ndarray)


def to_device(array: Array, device: str) -> Array:
    """Return the array on a device: a NumPy array for `cpu`, else a tensor."""
    return to_host(array) if device == "cpu" else _tensor(array, device)


def like(array: Any, other: Array) -> Array:
    """Convert an array or nested sequence to the array type and device of `other`."""
    return to_host(array) if is_on_host(other) else _tensor(array, other.device)


def to_host(array: Any) -> np.ndarray:
    """Return the array as a NumPy array; waits for the device."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)


def take(array: Array, rows: Array, axis: int = 0) -> Array:
    """Return rows (M,) int64 of an array (N, ...), or columns along another axis, in C order."""
    if is_on_host(array):
        return array.take(rows, axis)
    return array.index_select(axis, rows)  # the namespace's `take` has three more launches, for negative rows


def _tensor(array: Any, device: Any) -> Array:
    import torch

    if not isinstance(array, torch.Tensor):
        array = torch.from_numpy(np.ascontiguousarray(array))
    return array.to(device, non_blocking=True)


def every_nth(rows: Array, max_rows: int) -> Array:
    """Return every n-th of rows (N, ...), with the least n that leaves at most `max_rows`."""
    return rows[:: max(1, -(-len(rows) // max_rows))]


def scatter_min(values: Array, index: Array, size: int) -> Array:
    """Return the minimum (size,) of values (...) float64 at each index (...) int64; inf without a value."""
    if is_on_host(values):
        least = np.full(size, np.inf)
        np.minimum.at(least, index, values)
        return least
    least = values.new_full((size,), np.inf)
    return least.scatter_reduce(0, index.reshape(-1), values.reshape(-1), "amin")


class Index:
    """Nearest-neighbour index of points (M, 3) float64, metres, M >= 1; results are on the points' device."""

    def __init__(self, points: Array, *, few: bool = False) -> None:
        """Index the points. With `few`, for few queries, the tree is built faster and searched slower."""
        self.points = points
        self._on_gpu = not is_on_host(points) and points.is_cuda
        if not self._on_gpu:
            self._tree = cKDTree(to_host(points), **(FEW if few else {}))

    def query(
        self, queries: Array, k: int | list[int] = 1, max_distance: float = np.inf
    ) -> tuple[Array, Array]:
        """Find the k nearest points closer than `max_distance` to each of queries (Q, 3).

        Returns distances (float64, metres) and rows (int64), both (Q, k), nearest first, or (Q,) for k = 1.
        A missing neighbour has the distance inf and the row M.
        """
        if self._on_gpu:
            from pcreg.kernels.triton.points import k_nearest, nearest  # only GPU builds have Triton

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
        """Return distances (Q,) in metres to the k-th nearest point; inf unless below `max_distance`."""
        if self._on_gpu:
            from pcreg.kernels.triton.points import k_nearest

            return k_nearest.kth_distance(queries, self.points, k, max_distance)
        return self.query(queries, [k], max_distance)[0][:, 0]  # a list asks SciPy for the k-th alone
