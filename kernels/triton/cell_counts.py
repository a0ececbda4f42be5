"""How crowded the cells of a grid are: each point counts its cell up, and knows by what it found there."""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

BLOCK = 512  # points of a program


def occupied_and_crowded(columns: Tensor, scale: float, shape: Sequence[int], min_points: int) -> Tensor:
    """What pcreg.kernels.cell_counts says."""
    S = columns.shape[1]
    table = torch.zeros(2 + math.prod(shape), dtype=torch.int32, device=columns.device)
    arguments = columns, table, scale, *shape[1:], S, min_points
    launch(_count, -(-S // BLOCK), arguments, {"BLOCK": BLOCK}, None, num_warps=4)
    return table[:2]


@triton.jit(
    do_not_specialize=["ny", "nz", "S", "min_points"], do_not_specialize_on_alignment=["columns", "table"]
)
def _count(
    columns,  # (3, S) float32
    table,  # (2 + cells,) int32, zeros, out: both results, then how many points each cell holds
    scale,
    ny,
    nz,
    S,
    min_points,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = n < S
    x = (tl.load(columns + n, mask=inside, other=0.0) * scale).to(tl.int32)
    y = (tl.load(columns + S + n, mask=inside, other=0.0) * scale).to(tl.int32)
    z = (tl.load(columns + 2 * S + n, mask=inside, other=0.0) * scale).to(tl.int32)
    before = tl.atomic_add(table + 2 + (x * ny + y) * nz + z, 1, mask=inside, sem="relaxed")
    is_first = (inside & (before == 0)).to(tl.int32)
    # With the point that makes its cell crowded those before it count, too
    crowded = tl.where(before == min_points - 1, min_points, (before >= min_points).to(tl.int32))
    crowded = tl.where(inside, crowded, 0)
    tl.atomic_add(table, tl.sum(is_first), sem="relaxed")
    tl.atomic_add(table + 1, tl.sum(crowded), sem="relaxed")
