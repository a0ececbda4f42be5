"""Pairs of near points on the CPU, with one k-d tree per cloud.

The tree only proposes: which pairs are near is decided here, in the dtype of the points, so that the answer
does not depend on how the tree adds up. Clouds are a batch: points (N, 3) of all, and lengths (B,) int64.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

TREE_ULPS = 8  # units in the last place by which the tree's distance and ours may differ, generously
# Queries answered together: the pairs of a solid's points, and what is computed of them, take 0.5 GB
MAX_QUERIES = 1 << 14


class Pairs(NamedTuple):
    """T pairs of a query and a point near it, in no particular order."""

    i: np.ndarray  # (T,) int64, rows of the queries
    j: np.ndarray  # (T,) int64, rows of the points
    offset: np.ndarray  # (3, T), points[j] - queries[i] in metres, of the dtype of the points


def all_pairs(
    queries: np.ndarray, points: np.ndarray, query_lengths: np.ndarray, lengths: np.ndarray, radius: float
) -> Pairs:
    """The pairs that `radius_search` returns; half of them are searched if the queries are the points."""
    if queries is not points:
        return pairs_between(queries, points, query_lengths, lengths, radius)
    i, j, offset = pairs_within(points, lengths, radius)
    own = np.arange(len(points))
    offsets = np.concatenate([offset, -offset, np.zeros((3, len(own)), offset.dtype)], 1)
    return Pairs(np.concatenate([i, j, own]), np.concatenate([j, i, own]), offsets)


def radius_search(
    queries: np.ndarray, points: np.ndarray, query_lengths: np.ndarray, lengths: np.ndarray, radius: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """i (T,) and j (T,) of pcreg.kernels.neighbors.radius_search."""
    i, j, _ = all_pairs(queries, points, query_lengths, lengths, radius)
    bits = len(points).bit_length()
    pairs = np.sort(i << bits | j)
    return pairs >> bits, pairs & (1 << bits) - 1


def pairs_between(
    queries: np.ndarray, points: np.ndarray, query_lengths: np.ndarray, lengths: np.ndarray, radius: float
) -> Pairs:
    """The pairs of a query (N, 3) and a point (P, 3) of the same cloud."""
    tree_radius = _tree_radius(points, radius)
    found = [np.empty((0, 2), np.int64)]
    for some, others in zip(_clouds(query_lengths), _clouds(lengths), strict=True):
        proposed = _tree(queries[some]).sparse_distance_matrix(
            _tree(points[others]), tree_radius, output_type="ndarray"
        )
        found.append(np.stack([proposed["i"] + some.start, proposed["j"] + others.start], 1))
    return _near(queries, points, np.concatenate(found), radius)


def pairs_within(points: np.ndarray, lengths: np.ndarray, radius: float) -> Pairs:
    """The pairs of points (N, 3) that see one another, each once with i < j: half of the search."""
    tree_radius = _tree_radius(points, radius)
    found = [np.empty((0, 2), np.int64)]
    for cloud in _clouds(lengths):
        proposed = _tree(points[cloud]).query_pairs(tree_radius, output_type="ndarray")
        found.append(proposed + cloud.start)
    return _near(points, points, np.concatenate(found), radius)


def in_parts(lengths: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows of a batch of clouds with `lengths` (B,), and how many are of each cloud (B,), part by part.

    A sum over the neighbours of each row then needs the memory of one part's pairs alone. Clouds without
    points are one part without rows.
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, max(total, 1), MAX_QUERIES):
        stop = min(start + MAX_QUERIES, total)
        yield slice(start, stop), ends.clip(start, stop) - (ends - lengths).clip(start, stop)


def _tree_radius(points: np.ndarray, radius: float) -> float:
    """The radius in which to look for pairs, so that none within `radius` is lost to rounding."""
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    return radius * (1 + TREE_ULPS * float(np.finfo(points.dtype).eps))


def _clouds(lengths: np.ndarray) -> Iterator[slice]:
    """The rows of each cloud."""
    stops = np.cumsum(lengths).tolist()
    return map(slice, [0, *stops], stops)


def _tree(points: np.ndarray) -> cKDTree:
    return cKDTree(points, balanced_tree=False)  # by the middle of a box: quicker to build and to search


def _near(queries: np.ndarray, points: np.ndarray, pairs: np.ndarray, radius: float) -> Pairs:
    """Those of the proposed pairs (T, 2) that are within `radius`."""
    i, j = np.ascontiguousarray(pairs.T)
    offset = np.stack([p.take(j) - q.take(i) for q, p in zip(queries.T, points.T, strict=True)])
    dx, dy, dz = offset
    near = (dx * dx + dy * dy) + dz * dz <= radius * radius
    if near.all():  # as a rule
        return Pairs(i, j, offset)
    return Pairs(i[near], j[near], offset[:, near])
