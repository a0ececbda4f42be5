"""Normals of the surface that points were taken from."""

from itertools import combinations_with_replacement

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.se3 import dot
from pcreg.runtime import parallel

NEIGHBORS = 30
QUERIES_AT_ONCE = 1 << 11  # whose neighbours' coordinates, half a megabyte for each axis, stay in the cache


def normals_of(points: np.ndarray, radius: float) -> np.ndarray:
    """Unit normals (N, 3) of points (N, 3), of either sign: from up to 30 neighbours within `radius` m."""
    return np.linalg.eigh(scatter_matrices(points, points, radius)).eigenvectors[:, :, 0]


def surface_variation(queries: np.ndarray, points: np.ndarray, radius: float) -> np.ndarray:
    """The surface variation (Q,) around the `queries` (Q, 3), which are some of the points (N, 3).

    The least eigenvalue of the covariance of up to 30 neighbours within `radius` metres over the sum of all
    three (Pauly, Gross and Kobbelt, 2002): from 0, of a plane, to 1/3, of an isotropic distribution.
    """
    variances = np.linalg.eigvalsh(scatter_matrices(queries, points, radius))
    return variances[:, 0] / np.maximum(variances.sum(1), np.finfo(float).tiny)


def scatter_matrices(queries: np.ndarray, points: np.ndarray, radius: float) -> np.ndarray:
    """The scatter matrices (Q, 3, 3) of up to 30 of points (N, 3) within `radius` metres of each query.

    The `queries` (Q, 3) are some of the points, so that each has one neighbour at least, itself.
    """
    distance, rows = cKDTree(points).query(
        queries, NEIGHBORS, distance_upper_bound=radius, workers=parallel.cores_for(len(queries))
    )
    near = np.isfinite(distance)
    rows[~near] = 0  # of any point: it does not count
    columns = np.ascontiguousarray(points.T)
    found = np.empty((len(queries), 3, 3))
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        some = slice(start, start + QUERIES_AT_ONCE)
        centred = _centred(columns, queries[some], rows[some], near[some])
        for a, b in combinations_with_replacement(range(3), 2):
            found[some, a, b] = found[some, b, a] = np.einsum("qk,qk->q", centred[a], centred[b])
    return found


def _centred(
    columns: np.ndarray, queries: np.ndarray, rows: np.ndarray, near: np.ndarray
) -> list[np.ndarray]:
    """Three times (Q, 30): where the neighbours lie from their mean along each axis, 0 where there is none.

    Neighbours are `rows` (Q, 30) of the points (3, N), where they are `near`.
    """
    counts, centred = near.sum(1), []
    for column, own in zip(columns, queries.T, strict=True):
        offsets = (column.take(rows) - own[:, None]) * near
        offsets -= (offsets.sum(1) / counts)[:, None]
        centred.append(offsets * near)
    return centred


def towards(viewpoint: np.ndarray, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The normals (N, 3) of points (N, 3), flipped to the side of the viewpoint, (3,) or (N, 3)."""
    away = dot(viewpoint - points, normals) < 0
    return normals * np.where(away, -1.0, 1.0)[:, None]
