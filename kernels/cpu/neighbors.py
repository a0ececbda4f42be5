"""Pairs of near points on the CPU, with one k-d tree per cloud."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

TREE_ULPS = 8  # units in the last place by which the tree's distance and ours may differ, generously


class Pairs(NamedTuple):
    """T pairs of a query and a point near it, in no particular order."""

    i: np.ndarray  # (T,) int64, rows of the queries
    j: np.ndarray  # (T,) int64, rows of the points
    offset: np.ndarray  # (3, T), points[j] - queries[i] in metres, of the dtype of the points


def pairs_between(
    queries: Tensor, points: Tensor, query_lengths: Tensor, point_lengths: Tensor, radius: float
) -> Pairs:
    """The pairs that `radius_search` returns."""
    tree_radius = _tree_radius(points, radius)
    queries, points = queries.cpu().numpy(), points.cpu().numpy()
    found = [np.empty((0, 2), np.int64)]
    for some, others in zip(_clouds(query_lengths), _clouds(point_lengths), strict=True):
        proposed = _tree(queries[some]).sparse_distance_matrix(
            _tree(points[others]), tree_radius, output_type="ndarray"
        )
        found.append(np.stack([proposed["i"] + some.start, proposed["j"] + others.start], 1))
    return _near(queries, points, np.concatenate(found), radius)


def pairs_within(points: Tensor, lengths: Tensor, radius: float) -> Pairs:
    """The pairs of points (N, 3) that see one another, each once with i < j: half of the search."""
    tree_radius = _tree_radius(points, radius)
    points = points.cpu().numpy()
    found = [np.empty((0, 2), np.int64)]
    for cloud in _clouds(lengths):
        proposed = _tree(points[cloud]).query_pairs(tree_radius, output_type="ndarray")
        found.append(proposed + cloud.start)
    return _near(points, points, np.concatenate(found), radius)


def _tree_radius(points: Tensor, radius: float) -> float:
    """The radius in which to look for pairs, so that none within `radius` is lost to rounding."""
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    return radius * (1 + TREE_ULPS * torch.finfo(points.dtype).eps)


def _clouds(lengths: Tensor) -> Iterator[slice]:
    """The rows of each cloud."""
    stops = lengths.cumsum(0).tolist()
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
