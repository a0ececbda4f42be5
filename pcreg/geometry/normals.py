"""Normals of the surface that points were taken from."""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.se3 import dot
from pcreg.runtime import parallel

NEIGHBORS = 30


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
    near = np.isfinite(distance)[:, :, None]  # (Q, 30, 1)
    around = np.where(near, points[np.where(near[:, :, 0], rows, 0)] - queries[:, None], 0.0)
    centred = np.where(near, around - (around.sum(1) / near.sum(1))[:, None], 0.0)
    return centred.transpose(0, 2, 1) @ centred


def towards(viewpoint: np.ndarray, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The normals (N, 3) of points (N, 3), flipped to the side of the viewpoint, (3,) or (N, 3)."""
    away = dot(viewpoint - points, normals) < 0
    return normals * np.where(away, -1.0, 1.0)[:, None]
