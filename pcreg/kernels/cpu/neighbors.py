"""Pairs of near points on the CPU, with one k-d tree per cloud, and normals of their neighbourhoods.

The tree proposes pairs; distances are compared here, in the dtype of the points, so that the result does not
depend on the tree's rounding. A batch of clouds is given by all points (N, 3), and lengths (B,) int64.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

TREE_ULPS = 8  # generous bound of the tree's rounding errors, in units in the last place
ROWS_AT_ONCE = 1 << 12  # points whose sums are computed together, with terms of 15 MB at most
MIN_NEIGHBORS = 4  # points that a normal needs, including the point itself
MIN_VARIANCE_RATIO = 1e-5  # of the total variance; a smaller second variance is a rounding error

Rows = NDArray[np.int64]


class Pairs(NamedTuple):
    """T pairs of a query and a point near it, in no particular order."""

    i: Rows  # (T,), of the queries
    j: Rows  # (T,), of the points
    offset: np.ndarray  # (3, T), points[j] - queries[i] in metres, of the dtype of the points

    def within(self, radius: float, cube: bool = False) -> "Pairs":
        """Return the pairs within `radius` metres; with `cube`, within `radius` along each axis."""
        dx, dy, dz = self.offset
        near = (dx * dx + dy * dy) + dz * dz <= radius * radius
        if cube:
            near = np.abs(self.offset).max(0) <= radius
        if near.all():  # the usual case for pairs that a tree proposes
            return self
        rows = np.flatnonzero(near)  # faster than the mask
        return Pairs(self.i.take(rows), self.j.take(rows), self.offset.take(rows, 1))


def pairs_between(
    queries: np.ndarray,
    points: np.ndarray,
    query_lengths: np.ndarray,
    lengths: np.ndarray,
    radius: float,
    cube: bool = False,
) -> Pairs:
    """The pairs of a query (N, 3) and a point (P, 3) of the same cloud within the radius, or its cube."""
    tree_radius, norm = _tree_radius(points, radius), np.inf if cube else 2

    def proposed() -> Iterator[Rows]:
        for some, others in zip(_clouds(query_lengths), _clouds(lengths), strict=True):
            found = _tree(queries[some]).sparse_distance_matrix(
                _tree(points[others]), tree_radius, norm, "ndarray"
            )
            yield np.stack([found["i"] + some.start, found["j"] + others.start])

    return _near(queries, points, proposed(), radius, cube)


def pairs_within(points: np.ndarray, lengths: np.ndarray, radius: float, cube: bool = False) -> Pairs:
    """The pairs of points (N, 3) of the same cloud within the radius, or its cube, each once with i < j."""
    tree_radius, norm = _tree_radius(points, radius), np.inf if cube else 2
    proposed = (
        _tree(points[cloud]).query_pairs(tree_radius, norm, output_type="ndarray").T + cloud.start
        for cloud in _clouds(lengths)
    )
    return _near(points, points, proposed, radius, cube)


def from_both_ends(pairs: Pairs, count: int) -> tuple[Rows, Rows]:
    """Neighbours i, j (T,) of `count` points, each point itself included, from their `pairs_within`."""
    own = np.arange(count)
    return np.concatenate([pairs.i, pairs.j, own]), np.concatenate([pairs.j, pairs.i, own])


def in_order(i: Rows, j: Rows, count: int) -> tuple[Rows, Rows]:
    """Sort pairs of i (T,) and j (T,) < count by i, then by j."""
    bits = count.bit_length()
    pairs = i << bits
    pairs |= j
    pairs.sort()
    return pairs >> bits, pairs & (1 << bits) - 1


def _tree_radius(points: np.ndarray, radius: float) -> float:
    """Widen the radius for the tree, so that no pair within `radius` is lost to rounding."""
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    return radius * (1 + TREE_ULPS * float(np.finfo(points.dtype).eps))


def _clouds(lengths: np.ndarray) -> Iterator[slice]:
    """Rows of each cloud."""
    stops = np.cumsum(lengths).tolist()
    return map(slice, [0, *stops], stops)


def _tree(points: np.ndarray) -> cKDTree:
    return cKDTree(points, balanced_tree=False)  # faster to build and to search


def _near(
    queries: np.ndarray, points: np.ndarray, proposed: Iterable[Rows], radius: float, cube: bool
) -> Pairs:
    """Select the pairs within `radius` from the proposed ones, (2, T) for each cloud."""
    i, j = np.concatenate([np.empty((2, 0), np.int64), *proposed], 1)
    offset = np.stack([p.take(j) - q.take(i) for q, p in zip(queries.T, points.T, strict=True)])
    return Pairs(i, j, offset).within(radius, cube)


def surface_normals(points: np.ndarray, viewpoints: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Unit normals (N, 3) of points (N, 3), towards their viewpoints (N, 3), by `plane_normals`.

    The pairs (T,) are points i, ascending, and their neighbours j, including each point itself. Takes about
    60 bytes for each pair.
    """
    counts = np.bincount(i, minlength=len(points))
    sums = np.concatenate([np.empty((0, 9), points.dtype), *_sums(points, i, j, counts)])
    towards = (viewpoints - points).astype(np.float64)
    return plane_normals(counts, sums.astype(np.float64), towards).astype(points.dtype)


def _sums(points: np.ndarray, i: np.ndarray, j: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Yield parts of the sums (N, 9) of `plane_normals`; point n has counts[n] of the pairs (T,)."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    for start in range(0, len(points), ROWS_AT_ONCE):
        offsets = ends[start : start + ROWS_AT_ONCE + 1]
        some = slice(offsets[0], offsets[-1])
        x, y, z = (column.take(j[some]) - column.take(i[some]) for column in points.T)
        terms = np.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
        ones, columns = np.ones(len(terms), terms.dtype), np.arange(len(terms))
        yield csr_matrix((ones, columns, offsets - offsets[0]), (len(offsets) - 1, len(terms))) @ terms


def plane_normals(counts: np.ndarray, sums: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Unit normals (N, 3) on the side of `towards` (N, 3); zero for fewer than 4 points, or points on a line.

    `sums` (N, 9) float64 add up, over the `counts` (N,) neighbours, the offsets x, y, z and their products
    xx, xy, xz, yy, yz, zz. `towards` is float64, too.
    """
    x, y, z, *second = (sums / counts.clip(min=1)[:, None]).T
    first = x * x, x * y, x * z, y * y, y * z, z * z
    normals = least_direction(np, *(a - b for a, b in zip(second, first, strict=True)))
    normals = np.where(((normals * towards).sum(1) < 0)[:, None], -normals, normals)
    return normals * (counts >= MIN_NEIGHBORS)[:, None]


def least_direction(xp: Any, xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> Any:
    """Unit eigenvector (N, 3) of the least eigenvalue of N symmetric matrices with float64 entries (N,).

    By the trigonometric formula (Smith, 1961); zero where the two least eigenvalues are equal. `xp` is the
    module of the arrays, numpy or torch.
    """
    trace = (xx + yy + zz).clip(min=xp.finfo(xx.dtype).tiny)
    xx, xy, xz, yy, yz, zz = (entry / trace for entry in (xx, xy, xz, yy, yz, zz))
    mean = (xx + yy + zz) / 3
    a, b, c = xx - mean, yy - mean, zz - mean
    p = xp.sqrt((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6)
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = (determinant / (2 * p**3).clip(min=1e-30)).clip(-1, 1)
    least = mean + 2 * p * xp.cos((xp.arccos(cosine) + 2 * xp.pi) / 3)
    # Rows of A - least I are orthogonal to the eigenvector, so their longest cross product is parallel to it.
    a, b, c = xx - least, yy - least, zz - least
    rows = [xp.stack(row, 1) for row in ((a, xy, xz), (xy, b, yz), (xz, yz, c))]
    products = xp.stack([xp.linalg.cross(rows[n], rows[n - 1]) for n in range(3)])
    first, second, third = lengths = xp.sqrt((products * products).sum(2))
    is_first = (first >= second) & (first >= third)
    direction = xp.where((second >= third)[:, None], products[1], products[2])
    direction = xp.where(is_first[:, None], products[0], direction)
    longest = xp.amax(lengths, 0)
    clear = longest > MIN_VARIANCE_RATIO
    return direction / xp.where(clear, longest, 1)[:, None] * clear[:, None]
