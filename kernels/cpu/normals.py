"""Surface normals by the covariance of what lies within a radius, on the CPU."""

import numpy as np
from scipy.sparse import csr_matrix

from pcreg.kernels.cpu.neighbors import in_parts, radius_search
from pcreg.kernels.plane_fit import normals_of


def surface_normals(
    points: np.ndarray, lengths: np.ndarray, viewpoints: np.ndarray, radius: float
) -> np.ndarray:
    """Those of pcreg.kernels.normals, in the memory that the pairs of some 16,000 points take."""
    parts = [_sums(points, lengths, *part, radius) for part in in_parts(lengths)]
    counts, sums = (np.concatenate(each) for each in zip(*parts, strict=True))
    towards = (viewpoints - points).astype(np.float64)
    normals: np.ndarray = normals_of(np, counts, sums.astype(np.float64), towards).astype(points.dtype)
    return normals


def _sums(
    points: np.ndarray, lengths: np.ndarray, rows: slice, row_lengths: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """`counts` (R,) and `sums` (R, 9) of pcreg.kernels.plane_fit for the given rows.

    Neighbours are added up one by one in the order of their rows, in the dtype of the points.
    """
    some = points if rows.stop - rows.start == len(points) else points[rows]
    i, j = radius_search(some, points, row_lengths, lengths, radius)
    counts = np.bincount(i, minlength=len(some))
    x, y, z = (there.take(j) - here.take(i) for here, there in zip(some.T, points.T, strict=True))
    terms = np.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    ends = np.concatenate([[0], np.cumsum(counts)])
    of_rows = csr_matrix((np.ones(len(i), terms.dtype), np.arange(len(i)), ends), (len(some), len(i)))
    return counts, of_rows @ terms
