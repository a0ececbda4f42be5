"""The nearest point to each query, by comparing all of them: on a GPU that beats a tree up to a million."""

import torch
from torch import Tensor

BLOCK_PAIRS = 1 << 22  # of a query and a point, compared at a time on the CPU


def nearest_points(queries: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Metres (Q,) float64 from queries (Q, 3) to the nearest of points (M, 3), and rows (Q,) int64 of those.

    Both float64, contiguous, in metres, M >= 1. Of equally near points it is the first.
    """
    if points.is_cuda:
        from pcreg.kernels.triton.points.nearest import nearest_points as by_kernel

        return by_kernel(queries, points)
    rows = max(1, BLOCK_PAIRS // len(points))
    squared, at = zip(*(_nearest(block, points) for block in queries.split(rows)), strict=True)
    return torch.cat(squared).sqrt(), torch.cat(at)


def _nearest(queries: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    x, y, z = (queries[:, None] - points).unbind(2)
    least = ((x * x + y * y) + z * z).min(1)
    return least.values, least.indices
