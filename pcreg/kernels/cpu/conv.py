"""Sorting of triplets, and convolution for inference: dense products between two sparse ones.

In each kernel cell k the features of a bucket (k, i) are summed, multiplied by W[k] once, and added to row i.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

MAX_BUCKETS = 1 << 18  # buckets whose sums are in memory together: 64 MB for 64 channels

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]


def sort_triplets(
    i: Rows, j: Rows, k: Rows, n_out: int, n_in: int, n_cells: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Rows]:
    """Sort triplets by k, then i, then j; return i (T,), j (T,) and the bounds k_offsets (K + 1,)."""
    i_bits, j_bits = n_out.bit_length(), n_in.bit_length()
    key = k << i_bits
    key |= i
    key <<= j_bits
    key |= j
    key.sort()  # sorting numbers takes a fraction of the time of sorting rows
    k_offsets = np.searchsorted(key, np.arange(n_cells + 1) << i_bits + j_bits)
    j_sorted = (key & (1 << j_bits) - 1).astype(np.int32)
    key >>= j_bits
    key &= (1 << i_bits) - 1
    return key.astype(np.int32), j_sorted, k_offsets


def find_buckets(i: NDArray[np.int32], k_offsets: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32], Rows]:
    """Buckets of sorted triplets: their i (P,), their offsets (P + 1,), and bounds (K + 1,) of the cells."""
    starts_run = np.ones(len(i), dtype=bool)
    np.not_equal(i[1:], i[:-1], out=starts_run[1:])
    starts_run[k_offsets[:-1][np.diff(k_offsets) > 0]] = True
    starts = np.flatnonzero(starts_run)
    return i[starts], np.append(starts, len(i)).astype(np.int32), np.searchsorted(starts, k_offsets)


class Convolution:
    """A convolution over fixed triplets, for any weights and features."""

    def __init__(
        self, i: NDArray[np.int32], j: NDArray[np.int32], k_offsets: NDArray[np.int64], n_out: int, n_in: int
    ) -> None:
        """Prepare the triplets, which are as `sort_triplets` returns them."""
        self.n_out = n_out
        rows, offsets, bounds = find_buckets(i, k_offsets)
        self._parts = []  # of the cells: the first, bounds of their buckets, and both sparse matrices
        for first, last in pairwise(_splits(bounds)):
            low, high = bounds[first], bounds[last]
            begin, end = offsets[low], offsets[high]
            to_buckets = _summing(j[begin:end], offsets[low : high + 1] - begin, n_in)
            order = np.argsort(rows[low:high], kind="stable").astype(np.int32)
            ends = np.cumsum(np.bincount(rows[low:high], minlength=n_out))
            to_rows = _summing(order, np.concatenate([[0], ends]).astype(np.int32), high - low)
            self._parts.append((first, bounds[first : last + 1] - low, to_buckets, to_rows))

    def __call__(self, features: Floats, weight: Floats) -> Floats:
        """features (N_in, C), weight (K, C, M) -> (N_out, M), row i the sum of W[k] x[j]."""
        out = np.zeros((self.n_out, weight.shape[2]), np.float32)
        for first, bounds, to_buckets, to_rows in self._parts:
            sums = to_buckets @ features
            products = np.empty((len(sums), weight.shape[2]), np.float32)
            for k, (low, high) in enumerate(pairwise(bounds), first):
                np.matmul(sums[low:high], weight[k], out=products[low:high])
            out += to_rows @ products
        return out


def _splits(bounds: NDArray[np.int64]) -> list[int]:
    """Split cells into parts of up to MAX_BUCKETS, or one cell; cell k has bounds[k] .. bounds[k + 1]."""
    splits = [0]
    for k in range(1, len(bounds) - 1):
        if bounds[k + 1] - bounds[splits[-1]] > MAX_BUCKETS:
            splits.append(k)
    return [*splits, len(bounds) - 1]


def _summing(columns: NDArray[np.int32], offsets: NDArray[np.int32], n_columns: int) -> csr_matrix:
    """Sparse matrix that sums the rows columns[offsets[p] : offsets[p + 1]] of a factor into row p."""
    return csr_matrix((np.ones(len(columns), np.float32), columns, offsets), (len(offsets) - 1, n_columns))
