"""Reductions by index."""

import numpy as np

from pcreg.arrays.namespace import Array, is_on_host


def scatter_min(values: Array, index: Array, size: int) -> Array:
    """Least of the values (...) float64 at each index (...) int64 below `size`: (size,), inf without one."""
    if is_on_host(values):
        least = np.full(size, np.inf)
        np.minimum.at(least, index, values)
        return least
    least = values.new_full((size,), np.inf)
    return least.scatter_reduce(0, index.reshape(-1), values.reshape(-1), "amin")
