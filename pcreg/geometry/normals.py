"""Normals of the surface that points were taken from, and how planar it is."""

from itertools import combinations_with_replacement

import numpy as np

from pcreg.arrays import Array, Index, device_of, every_nth, is_on_host, like, namespace, to_host
from pcreg.geometry.se3 import dot
from pcreg.kernels.cpu.neighbors import least_direction

NEIGHBORS = 30
QUERIES_AT_ONCE = 1 << 11  # on the CPU: their neighbours, half a megabyte for each axis, stay in the cache

RADIUS_VOXELS = 3.0  # of the neighbourhood that is planar or not
MAX_QUERY_POINTS = 2_000  # the standard error of a fraction of 0.05 is then 0.005
# Surface variation: points that fill space have 0.1 to 0.3, most of a simulated room below 0.04
MAX_PLANAR_VARIATION = 0.06
# Of noise 0.005 are planar, of rooms 0.4 and more: one wall among leaves is enough
MIN_PLANAR_FRACTION = 0.05


def normals_of(points: Array, radius: float) -> Array:
    """Unit normals (N, 3) of points (N, 3), of either sign: from up to 30 neighbours within `radius` m."""
    return least_spread(scatter_matrices(points, points, radius))[1]


def towards(viewpoint: Array, points: Array, normals: Array) -> Array:
    """Normals (N, 3) of points (N, 3), flipped to the side of the viewpoint, (3,) or (N, 3)."""
    away = dot(like(viewpoint, points) - points, normals) < 0
    return normals * namespace(points).where(away, -1.0, 1.0)[:, None]


def surface_variation(queries: Array, points: Array, radius: float) -> Array:
    """Surface variation (Q,) around the `queries` (Q, 3), which are some of the points (N, 3).

    The least eigenvalue of the covariance of up to 30 neighbours within `radius` metres over the sum of all
    three (Pauly, Gross and Kobbelt, 2002): from 0, of a plane, to 1/3, of an isotropic distribution.
    """
    scatter = scatter_matrices(queries, points, radius)
    total = scatter[:, 0, 0] + scatter[:, 1, 1] + scatter[:, 2, 2]
    return least_spread(scatter)[0] / total.clip(min=np.finfo(float).tiny)


def has_surface(points: Array, voxel: float) -> bool:
    """True if enough of the points (N, 3), one per cell of `voxel` metres, lie on planes.

    Noise fills space: its normals have random directions, any two clouds of it overlap, and descriptor
    matches between them follow the outlines of the clouds and chance.
    """
    return planar_fraction(points, voxel) >= MIN_PLANAR_FRACTION


def planar_fraction(points: Array, voxel: float) -> float:
    """Fraction of points (N, 3), N > 0, with a surface variation below 0.06: nearly a plane."""
    queries = every_nth(points, MAX_QUERY_POINTS)
    planar = surface_variation(queries, points, RADIUS_VOXELS * voxel) < MAX_PLANAR_VARIATION
    return int(planar.sum()) / len(queries)


def scatter_matrices(queries: Array, points: Array, radius: float, neighbors: int = NEIGHBORS) -> Array:
    """Scatter matrices (Q, 3, 3) of up to `neighbors` points (N, 3) within `radius` of `queries` (Q, 3)."""
    xp = namespace(points)
    distance, rows = Index(points).query(queries, neighbors, radius)
    near = xp.isfinite(distance)
    rows[~near] = 0  # of any point: it does not count
    columns = [points[:, axis] for axis in range(3)]
    if is_on_host(points):
        columns = [np.ascontiguousarray(column) for column in columns]
    at_once = QUERIES_AT_ONCE if is_on_host(points) else max(1, len(queries))
    found = xp.empty((len(queries), 3, 3), dtype=points.dtype, device=device_of(points))
    for start in range(0, len(queries), at_once):
        some = slice(start, start + at_once)
        centred = _centred(columns, queries[some], rows[some], near[some])
        for a, b in combinations_with_replacement(range(3), 2):
            found[some, a, b] = found[some, b, a] = xp.einsum("qk,qk->q", centred[a], centred[b])
    return found


def _centred(columns: list[Array], queries: Array, rows: Array, near: Array) -> list[Array]:
    """Coordinates (Q, K) along each axis of neighbours `rows` (Q, K) from their mean; 0 where not `near`."""
    xp = namespace(rows)
    counts, centred = near.sum(1), []
    for column, own in zip(columns, queries.T, strict=True):
        offsets = (xp.take(column, rows.reshape(-1)).reshape(rows.shape) - own[:, None]) * near
        offsets -= (offsets.sum(1) / counts)[:, None]
        centred.append(offsets * near)
    return centred


def least_spread(scatter: Array) -> tuple[Array, Array]:
    """Least eigenvalue (Q,), unit eigenvector (Q, 3) of scatter matrices; zero of a line on a GPU."""
    if is_on_host(scatter) or not scatter.is_cuda:
        values, vectors = np.linalg.eigh(to_host(scatter))
        return like(values[:, 0], scatter), like(vectors[:, :, 0], scatter)
    entries = (scatter[:, a, b] for a in range(3) for b in range(a, 3))
    direction = least_direction(namespace(scatter), *entries)  # in closed form: a GPU's eigh takes longer
    return dot(direction, (scatter @ direction[:, :, None])[:, :, 0]), direction
