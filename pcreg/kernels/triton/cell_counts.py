"""How crowded the cells of grids are: each point counts its cell up, and knows by what it found there."""

import math
from collections.abc import Sequence
from itertools import accumulate

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

BLOCK = 512  # points of a program


def occupied_and_crowded(
    columns: Tensor, scales: Sequence[float], shapes: Sequence[Sequence[int]], min_points: int
) -> Tensor:
    """What pcreg.kernels.cell_counts says, of all scales by one launch."""
    V, S = len(scales), columns.shape[1]
    first = list(accumulate(map(math.prod, shapes), initial=2 * V))
    table = torch.zeros(first.pop(), dtype=torch.int32, device=columns.device)
    rows = [(scale, *shape[1:], start) for scale, shape, start in zip(scales, shapes, first, strict=True)]
    # In float64, which holds all of them exactly
    grids = torch.tensor(rows, dtype=torch.float64).to(columns.device, non_blocking=True)
    blocks = -(-S // BLOCK)
    arguments = columns, grids, table, S, blocks, min_points
    launch(_count, V * blocks, arguments, {"BLOCK": BLOCK}, None, num_warps=4)
    return table[: 2 * V].view(V, 2)


@triton.jit(
    do_not_specialize=["S", "blocks", "min_points"],
    do_not_specialize_on_alignment=["columns", "grids", "table"],
)
def _count(
    columns,  # (3, S) float32
    grids,  # (V, 4) float64: the scale, cells along y and z, and where its cells begin in the table
    table,  # (2 V + cells,) int32, zeros, out: of each grid both results, then how many points a cell holds
    S,
    blocks,
    min_points,
    BLOCK: tl.constexpr,
):
    v = tl.program_id(0) // blocks
    scale = tl.load(grids + 4 * v).to(tl.float32)
    ny, nz = tl.load(grids + 4 * v + 1).to(tl.int32), tl.load(grids + 4 * v + 2).to(tl.int32)
    cells = table + tl.load(grids + 4 * v + 3).to(tl.int32)
    n = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = n < S
    x = (tl.load(columns + n, mask=inside, other=0.0) * scale).to(tl.int32)
    y = (tl.load(columns + S + n, mask=inside, other=0.0) * scale).to(tl.int32)
    z = (tl.load(columns + 2 * S + n, mask=inside, other=0.0) * scale).to(tl.int32)
    before = tl.atomic_add(cells + (x * ny + y) * nz + z, 1, mask=inside, sem="relaxed")
    is_first = (inside & (before == 0)).to(tl.int32)
    # With the point that makes its cell crowded those before it count, too
    crowded = tl.where(before == min_points - 1, min_points, (before >= min_points).to(tl.int32))
    crowded = tl.where(inside, crowded, 0)
    tl.atomic_add(table + 2 * v, tl.sum(is_first), sem="relaxed")
    tl.atomic_add(table + 2 * v + 1, tl.sum(crowded), sem="relaxed")
