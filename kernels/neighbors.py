"""Exact fixed-radius search in continuous space; on the CPU, with one k-d tree per cloud.

The tree only proposes: which pairs are near is decided here, in the dtype of the points, so that
the answer does not depend on how the tree adds up. NumPy in one thread is faster than torch in two
for these sizes, and does not wait for a core that another process holds.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.cpu.neighbors import pairs_between

# Queries answered together: the pairs of a solid's points, and what is computed of them, take 0.5 GB
MAX_QUERIES = 1 << 14


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
    i, j, _ = pairs_between(queries, points, query_lengths, point_lengths, radius)
    bits = len(points).bit_length()
    pairs = np.sort(i << bits | j)
    return tuple(
        torch.from_numpy(rows).to(points.device) for rows in (pairs >> bits, pairs & (1 << bits) - 1)
    )


def in_parts(lengths: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Rows of a batch of clouds with `lengths` (B,), and how many are of each cloud (B,), part by part.

    A sum over the neighbours of each row then needs the memory of one part's pairs alone. Clouds without
    points are one part without rows.
    """
    ends = lengths.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, max(total, 1), MAX_QUERIES):
        stop = min(start + MAX_QUERIES, total)
        before = torch.stack([ends - lengths, ends]).clamp(start, stop)
        yield slice(start, stop), before[1] - before[0]
