"""Surface normals by the covariance of neighbourhoods, on the CPU."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from pcreg.kernels.plane_fit import normals_of

ROWS_AT_ONCE = 1 << 12  # points whose sums are computed together, with terms of 15 MB at most


def surface_normals(points: np.ndarray, viewpoints: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Normals (N, 3) as pcreg.kernels.neighbors.surface_normals returns them."""
    counts = np.bincount(i, minlength=len(points))
    sums = np.concatenate([np.empty((0, 9), points.dtype), *_sums(points, i, j, counts)])
    towards = (viewpoints - points).astype(np.float64)
    normals: np.ndarray = normals_of(np, counts, sums.astype(np.float64), towards).astype(points.dtype)
    return normals


def _sums(points: np.ndarray, i: np.ndarray, j: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Parts of the sums (N, 9) of `normals_of`, over `counts` (N,) neighbours j (T,) of each row.

    Neighbours are added up one by one in the order of their rows, in the dtype of the points.
    """
    ends = np.concatenate([[0], np.cumsum(counts)])
    for start in range(0, len(points), ROWS_AT_ONCE):
        offsets = ends[start : start + ROWS_AT_ONCE + 1]
        some = slice(offsets[0], offsets[-1])
        x, y, z = (column.take(j[some]) - column.take(i[some]) for column in points.T)
        terms = np.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
        ones, columns = np.ones(len(terms), terms.dtype), np.arange(len(terms))
        yield csr_matrix((ones, columns, offsets - offsets[0]), (len(offsets) - 1, len(terms))) @ terms
