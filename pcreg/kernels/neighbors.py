"""Exact fixed-radius search in continuous space; on the CPU, with one k-d tree per cloud.

There NumPy in one thread is faster than torch in two for these sizes, and does not wait for a core that
another process holds.
"""

import torch
from torch import Tensor

from pcreg.kernels.cpu import neighbors as cpu


def radius_search(
    queries: Tensor, points: Tensor, query_lengths: Tensor, point_lengths: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """All (i, j) with |points[j] - queries[i]| <= radius, i and j of the same cloud of the batch.

    queries (N, 3) and points (P, 3) of one floating dtype, lengths (B,) int64, radius in metres.
    Returns i (T,) and j (T,) int64, by i and then by j. The distance is evaluated in the dtype of the
    points, as (dx^2 + dy^2) + dz^2 <= radius^2. Raises ValueError unless radius > 0.
    """
    if points.is_cuda:
        # Triton comes with builds for GPUs only
        from pcreg.kernels.triton.search.triplets import search_native

        found = search_native(queries, points, query_lengths, point_lengths, radius, 1, radius)
        return found.i.long(), found.j.long()
    arrays = [each.cpu().numpy() for each in (queries, points, query_lengths, point_lengths)]
    i, j = cpu.radius_search(*arrays, radius)
    return torch.from_numpy(i).to(points.device), torch.from_numpy(j).to(points.device)
