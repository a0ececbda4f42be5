"""Pairs of points within a radius."""

import torch
from torch import Tensor

from pcreg.kernels.cpu import neighbors


def radius_search(
    queries: Tensor, points: Tensor, query_lengths: Tensor, point_lengths: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """Find all (i, j) with |points[j] - queries[i]| <= radius, i and j of the same cloud of the batch.

    The distance is evaluated in the dtype of the points, as (dx^2 + dy^2) + dz^2 <= radius^2.

    Args:
        queries: (N, 3) float32 or float64, metres.
        points: (P, 3) of the same dtype.
        query_lengths: (B,) int64.
        point_lengths: (B,) int64.
        radius: Metres.

    Returns:
        i (T,) and j (T,) int64, sorted by i, then j.

    Raises:
        ValueError: The radius is not positive, or, on a GPU, the dtypes do not fit.
    """
    if points.is_cuda:
        # Triton comes with builds of PyTorch for GPUs only.
        from pcreg.kernels.triton.search.query import pair_search
        from pcreg.kernels.triton.search.run import find_triplets

        (found,) = find_triplets([pair_search(queries, points, query_lengths, point_lengths, radius)])
        return found.i.long(), found.j.long()
    arrays = [each.numpy() for each in (queries, points, query_lengths, point_lengths)]
    pairs = neighbors.pairs_between(*arrays, radius)
    i, j = neighbors.in_order(pairs.i, pairs.j, len(points))
    return torch.from_numpy(i), torch.from_numpy(j)
