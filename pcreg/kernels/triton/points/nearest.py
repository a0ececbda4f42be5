"""The nearest point to each query: a program per few queries goes through all points, in registers."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

QUERIES, POINTS = 8, 128  # of a program, and that it compares them with at a time


def nearest_points(queries: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return metres (Q,) from queries (Q, 3) to the nearest of points (M, 3), and its row (Q,) int64.

    Of equally near points the first. Both float64, contiguous, M >= 1.
    """
    Q, M = len(queries), len(points)
    squared, rows = queries.new_empty(Q), torch.empty(Q, dtype=torch.int64, device=queries.device)
    constants = {"QUERIES": QUERIES, "POINTS": POINTS}
    arguments = queries, points, squared, rows, Q, M
    launch(_nearest, -(-Q // QUERIES), arguments, constants, None, num_warps=4, enable_fp_fusion=False)
    return squared.sqrt_(), rows


def nearest_within(queries: Tensor, points: Tensor, max_distance: float) -> tuple[Tensor, Tensor]:
    """`nearest_points` closer than `max_distance`; elsewhere infinity and row M."""
    distance, row = nearest_points(queries.contiguous(), points.contiguous())
    if math.isinf(max_distance):
        return distance, row
    near = distance < max_distance
    return torch.where(near, distance, torch.inf), torch.where(near, row, len(points))


@triton.jit(
    do_not_specialize=["Q", "M"], do_not_specialize_on_alignment=["queries", "points", "squared", "rows"]
)
def _nearest(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    squared,  # (Q,), out, like the next
    rows,  # (Q,)
    Q,
    M,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
):
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    x = tl.load(queries + 3 * q, mask=q < Q, other=0.0)[:, None]
    y = tl.load(queries + 3 * q + 1, mask=q < Q, other=0.0)[:, None]
    z = tl.load(queries + 3 * q + 2, mask=q < Q, other=0.0)[:, None]
    least, first = nearest_of(points, M, x, y, z, QUERIES, POINTS)
    tl.store(squared + q, least, mask=q < Q)
    tl.store(rows + q, first.to(tl.int64), mask=q < Q)


@triton.jit
def nearest_of(points, M, x, y, z, QUERIES: tl.constexpr, POINTS: tl.constexpr):
    """Squared distance (QUERIES,) from queries (QUERIES, 1) to the nearest point, and its row."""
    best = tl.full((QUERIES, POINTS), float("inf"), tl.float64)
    best_at = tl.zeros((QUERIES, POINTS), tl.int32)
    for start in range(0, M, POINTS):
        p = start + tl.arange(0, POINTS)
        dx = x - tl.load(points + 3 * p, mask=p < M, other=float("inf"))[None, :]
        dy = y - tl.load(points + 3 * p + 1, mask=p < M, other=float("inf"))[None, :]
        dz = z - tl.load(points + 3 * p + 2, mask=p < M, other=float("inf"))[None, :]
        distance = (dx * dx + dy * dy) + dz * dz
        closer = distance < best
        best = tl.where(closer, distance, best)
        best_at = tl.where(closer, p[None, :], best_at)
    least = tl.min(best, 1)
    return least, tl.min(tl.where(best == least[:, None], best_at, M), 1)
