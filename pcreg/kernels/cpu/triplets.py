"""The order of triplets (i, j, k) and their buckets, on the CPU: see pcreg.kernels.triplets."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def sort_triplets(
    i: Rows, j: Rows, k: Rows, n_out: int, n_in: int, n_cells: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Rows]:
    """i and j (T,) sorted by k, then i, then j, and the bounds k_offsets (K + 1,) of the cells."""
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
    """Runs of sorted triplets that share (k, i): their i (P,), offsets (P + 1,) and k_offsets (K + 1,)."""
    starts_run = np.ones(len(i), dtype=bool)
    np.not_equal(i[1:], i[:-1], out=starts_run[1:])
    starts_run[k_offsets[:-1][np.diff(k_offsets) > 0]] = True
    starts = np.flatnonzero(starts_run)
    return i[starts], np.append(starts, len(i)).astype(np.int32), np.searchsorted(starts, k_offsets)
