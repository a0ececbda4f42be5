"""Surface normals of points, and the planarity of the surface."""

import numpy as np

from pcreg.arrays import Array, Index, is_on_host, like, namespace, take
from pcreg.geometry.se3 import dot
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.kernels.cpu.neighbors import least_direction

NEIGHBORS = 30
# Axes of the six products xx xy xz yy yz zz, and the product that each entry of a matrix (3, 3) takes
FIRST, SECOND, ENTRIES = [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2], [0, 1, 2, 1, 3, 4, 2, 4, 5]
QUERIES_AT_ONCE = 1 << 9  # on the CPU: their neighbours, a third of a megabyte, stay in the cache

# Surface variation: points that fill space have 0.1 to 0.3, most of a simulated room below 0.04
MAX_PLANAR_VARIATION = 0.06
# Of noise 0.005 are planar, of rooms 0.4 and more: one wall among leaves is enough
MIN_PLANAR_FRACTION = 0.05


def normals_of(points: Array, radius: float) -> tuple[Array, Array]:
    """Unit normals (N, 3) of points (N, 3), of either sign, and surface variation (N,).

    Both are computed from up to 30 neighbours within `radius` metres. The variation is the least eigenvalue
    of their covariance over the sum of all three (Pauly, Gross and Kobbelt, 2002): from 0, of a plane, to
    1/3, of an isotropic distribution.
    """
    scatter = scatter_matrices(points, points, radius)
    least, normals = least_spread(scatter)
    total = scatter[:, 0, 0] + scatter[:, 1, 1] + scatter[:, 2, 2]
    return normals, least / total.clip(min=np.finfo(float).tiny)


def towards(viewpoint: Array, points: Array, normals: Array) -> Array:
    """Normals (N, 3) of points (N, 3), flipped to the side of the viewpoint, (3,) or (N, 3)."""
    away = dot(like(viewpoint, points) - points, normals) < 0
    return normals * namespace(points).where(away, -1.0, 1.0)[:, None]


def fills_space(points: Array, variation: Array, radius: float, *, strict: bool = False) -> bool:
    """True if points (N, 3), N > 0, with surface variation (N,) within `radius` metres, lie on no surface.

    Then normals have random directions, any two clouds overlap, and descriptor matches between them follow
    their outlines and chance. Noise of up to a fifth of the radius leaves a surface planar in cells of that
    size, which is enough unless `strict`.
    """
    if planar_fraction(variation) >= MIN_PLANAR_FRACTION:
        return False
    if strict:
        return True
    in_cells = take(points, voxel_downsample(points, radius))
    return planar_fraction(normals_of(in_cells, 3 * radius)[1]) < MIN_PLANAR_FRACTION


def planar_fraction(variation: Array) -> float:
    """Fraction of points, by surface variation (N,), N > 0, that lie nearly on a plane."""
    return int((variation < MAX_PLANAR_VARIATION).sum()) / len(variation)


def scatter_matrices(queries: Array, points: Array, radius: float) -> Array:
    """Scatter matrices (Q, 3, 3) of up to 30 points (N, 3) within `radius` of `queries` (Q, 3)."""
    xp = namespace(points)
    distance, rows = Index(points).query(queries, NEIGHBORS, radius)
    near = xp.isfinite(distance)
    rows *= near  # missing neighbours become row 0, and have no weight
    columns = xp.stack([points[:, axis] for axis in range(3)])
    at_once = QUERIES_AT_ONCE if is_on_host(points) else max(1, len(queries))
    found = xp.empty((len(queries), 9), dtype=points.dtype, device=points.device)
    for start in range(0, len(queries), at_once):
        some = slice(start, start + at_once)
        centred = _centred(columns, queries[some], rows[some], near[some])
        # Not centred[axes]: a list of indices would be copied to a GPU
        first, second = (xp.stack([centred[axis] for axis in axes]) for axes in (FIRST, SECOND))
        products = xp.einsum("pqk,pqk->pq", first, second)
        found[some] = xp.stack([products[product] for product in ENTRIES], axis=1)
    return found.reshape(-1, 3, 3)


def _centred(columns: Array, queries: Array, rows: Array, near: Array) -> Array:
    """Offsets (3, Q, K) of neighbours `rows` (Q, K) of columns (3, N) from their mean; 0 if not `near`."""
    offsets = take(columns, rows.reshape(-1), 1).reshape(3, *rows.shape)
    offsets -= queries.T[:, :, None]
    offsets *= near
    offsets -= (offsets.sum(2) / near.sum(1))[:, :, None]
    offsets *= near
    return offsets


def least_spread(scatter: Array) -> tuple[Array, Array]:
    """Least eigenvalue (Q,) and its unit eigenvector (Q, 3) of scatter matrices (Q, 3, 3).

    The vector is zero where the two smallest eigenvalues are equal, as for points on a line.
    """
    xp, entries = namespace(scatter), [scatter[:, a, b] for a in range(3) for b in range(a, 3)]
    if is_on_host(scatter) or not scatter.is_cuda:
        direction = least_direction(xp, *entries)
    else:
        from pcreg.kernels.triton import plane_fit  # comes with builds for GPUs only

        # The kernel takes sums of offsets and of their products; offsets from the mean add up to zero
        none = xp.zeros_like(entries[0])
        counts = xp.full_like(none, NEIGHBORS, dtype=xp.int64)
        sums = xp.stack([none, none, none, *entries], axis=1)
        direction = plane_fit.plane_normals(counts, sums, xp.zeros_like(scatter[:, 0]))
    single = dot(direction, (scatter @ direction[:, :, None])[:, :, 0])
    # Of eigenvalues x, x and y the trace is 2 x + y, and the sum of squares 2 x^2 + y^2
    trace, squares = entries[0] + entries[3] + entries[5], (scatter**2).sum((1, 2))
    double = (2 * trace - xp.sqrt((6 * squares - 2 * trace**2).clip(min=0))) / 6
    return xp.where(xp.any(direction != 0, axis=1), single, double), direction
