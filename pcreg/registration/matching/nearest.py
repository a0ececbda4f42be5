"""Exact nearest-neighbour matching of features, in bounded memory.

Features (N, C) and (M, C) are compared on their device. Index pairs refer to rows of the features, and so to
rows of the points as well. Of equal rounded distances the lower index counts, but even the distances of equal
rows may be rounded differently.
"""

import logging
from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, every_nth, is_on_host, like, namespace, to_host
from pcreg.runtime import parallel

log = logging.getLogger(__name__)

MAX_PRODUCTS = 10**10  # multiplications that compare all rows of a with all of b: 1 or 2 s on two cores
MIN_COLUMNS = 40  # of projected features
MAX_COMPARED_PAIRS = 50_000**2  # of rows, each way; clouds of up to 50,000 points are matched whole
MIN_KEYPOINTS = 5_000  # of the smaller cloud, however large the other is; papers evaluate with as many
MAX_ONE_WAY = 2_000  # matches that motions are proposed from, beside the mutual ones
BLOCK_ROWS, MAX_BLOCK_BYTES = 256, 1 << 20  # of the distance matrix at a time, which a core's cache holds
MAX_GPU_BLOCK_BYTES = 1 << 30  # the same on a GPU, where a small block takes as long to launch


@dataclass(frozen=True)
class Matches:
    """Index pairs of rows of source and target, on the host."""

    rows: np.ndarray  # (P, 2) int64, mutual: no row is in two pairs
    one_way: np.ndarray | None = None  # (N, 2) int64, rows of one cloud with their nearest in the other

    def further_points(self, source: Array, target: Array) -> tuple[Array, Array] | None:
        """Points (K, 3) of clouds (N, 3), (M, 3) in mutual or one-way matches; None without one-way ones."""
        if self.one_way is None:
            return None
        both = every_nth(self.rows, MAX_ONE_WAY), every_nth(self.one_way, MAX_ONE_WAY)
        of_source, of_target = np.concatenate(both).T
        rows = np.divmod(np.unique(of_source * len(target) + of_target), len(target))
        return source[like(rows[0], source)], target[like(rows[1], target)]


def nearest(a: Array, b: Array) -> Array:
    """Nearest row of b (M, C), M >= 1, by Euclidean distance, for each row of a (N, C): (N,) int64."""
    xp, on_host = namespace(a), is_on_host(a)
    log.info("match: %d points with %d", len(a), len(b))
    # Subtracting the mean from both preserves small differences of large histograms. It is rounded, to zero
    # for unit vectors.
    centre = xp.round(xp.mean(b, axis=0))
    a, b = a - centre, b - centre
    # |a - b|^2 = |a|^2 - 2 (a.b - |b|^2 / 2): |a|^2 is common to all b, the rest one product.
    half = xp.sum(b * b, axis=1)[:, None] / 2
    a, b = xp.concat([a, xp.ones_like(a[:, :1])], axis=1), xp.concat([b, -half], axis=1)
    n_rows = BLOCK_ROWS if on_host else max(1, MAX_GPU_BLOCK_BYTES // (half.itemsize * len(b)))
    n_columns = max(1, MAX_BLOCK_BYTES // (half.itemsize * BLOCK_ROWS)) if on_host else len(b)
    parts = [b[start : start + n_columns].T for start in range(0, len(b), n_columns)]

    def block(start: int) -> Array:
        log.debug("match: %.0f %% of %d points with %d", 100 * start / len(a), len(a), len(b))
        some = a[start : start + n_rows]
        every = xp.arange(len(some), device=some.device)
        rows, highest = [], []
        for part in parts:
            scores = some @ part
            rows.append(xp.argmax(scores, axis=1))
            highest.append(scores[every, rows[-1]])
        best = xp.argmax(xp.stack(highest), axis=0)
        return best * n_columns + xp.stack(rows)[best, every]

    with parallel.one_for_blas():
        device = "cpu" if on_host else "cuda"  # on a GPU one block at a time is in memory
        return xp.concat(parallel.each(block, range(0, len(a), n_rows), device))


def match_all(a: Array, b: Array, rows: np.ndarray | None = None) -> Matches:
    """Mutual matches, and one-way ones from a to b; of a, if given, only from `rows` (K,), ascending."""
    rows = np.arange(len(a)) if rows is None else rows
    if len(rows) == 0 or len(b) == 0:
        none = np.empty((0, 2), dtype=np.int64)
        return Matches(none, none)
    to_b = nearest(a if len(rows) == len(a) else a[like(rows, a)], b)
    of_b, again = namespace(b).unique_inverse(to_b)  # repeated rows are compared once
    back = to_host(nearest(b[of_b], a)[again])
    one_way = np.stack([rows, to_host(to_b)], axis=1)
    return Matches(one_way[back == rows], one_way)


def match_within_bound(a: Array, b: Array) -> Matches:
    """Mutual and one-way matches; of very many rows only those of some keypoints.

    Keypoints are evenly spaced rows of the smaller cloud, and so spread evenly over it if rows are in the
    order of grid cells, as from pcreg.geometry.voxel_grid. Their number keeps the compared pairs of rows
    within 50,000^2 each way, but is at least 5,000. So the time is at most that of two clouds of 50,000
    points, and grows with the larger cloud only if that has more than 500,000.
    """
    if len(a) > len(b):
        found = match_within_bound(b, a)
        rows, one_way = found.rows[:, ::-1], found.one_way[:, ::-1]
        return Matches(rows[np.argsort(rows[:, 0])], one_way=one_way)
    most = max(MAX_COMPARED_PAIRS // max(len(b), 1), MIN_KEYPOINTS)
    return match_all(a, b, spread_rows(len(a), most))


def spread_rows(count: int, most: int) -> np.ndarray:
    """Rows (K,), at most `most` of `count`, evenly spaced."""
    return np.arange(min(count, most)) * count // max(min(count, most), 1)


def pca_project(a: Array, b: Array) -> tuple[Array, Array]:
    """Project features (N, C) and (M, C) onto common principal directions, if there are many of both.

    Descriptors at several scales are correlated, and comparing 20,000 rows of 96 numbers with as many takes
    twice as long as with 32 numbers. For two LiDAR scans 40 directions keep 96 % of the squared norm, and 131
    of 143 right matches.
    """
    columns = max(MIN_COLUMNS, MAX_PRODUCTS // max(len(a) * len(b), 1))
    if columns >= a.shape[1]:
        return a, b
    with parallel.one_for_blas():
        directions = np.linalg.eigh(to_host(a.T @ a + b.T @ b)).eigenvectors[:, -columns:]
        return a @ like(directions, a), b @ like(directions, b)
