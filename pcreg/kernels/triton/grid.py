"""Grid sampling: the points of a batch are sorted by cell, and one of each cell is picked."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import MAX_KEY
from pcreg.kernels.triton.bits import bits, from_bits
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search.index import CellIndex, cloud_numbers

BLOCK = 128  # points of a program


def grid_sample(points: Tensor, lengths: Tensor, size: float, origin: Tensor) -> Tensor:
    """What pcreg.kernels.grid.grid_sample says, of N > 0 points."""
    P, B = len(points), len(lengths)
    cloud = cloud_numbers(lengths, P)
    local = points.double() - (origin if B == 1 else origin[cloud])
    lower, upper = torch.aminmax(local, dim=0)
    frame, keys = local.new_empty(7), cloud.new_empty(P, dtype=torch.int64)
    cells = keys.new_zeros(1)
    arguments = local, cloud, lower, upper, frame, keys, cells, P, B, bits(size)
    launch(_keys, -(-P // BLOCK), arguments, {"BLOCK": BLOCK}, None, enable_fp_fusion=False)
    keys, order = torch.sort(keys, stable=True)
    rows, _, _ = CellIndex(local, keys, order, cloud, frame, size, B).representatives()
    if int(cells) > MAX_KEY:
        raise ValueError(
            f"{B} clouds with cells of {size:g} m exceed 62-bit keys, or are not finite; take larger cells"
        )
    return rows


@triton.jit(
    do_not_specialize=["P", "B", "size"],
    do_not_specialize_on_alignment=["points", "cloud", "lower", "upper", "frame", "keys", "cells"],
)
def _keys(
    points,  # (P, 3) float64, from the origins of their clouds
    cloud,  # (P,) int32
    lower,  # (3,) float64, of all points, like the next
    upper,  # (3,)
    frame,  # (7,) float64, out: that of an index whose cells are counted from zero, for picking points
    keys,  # (P,) int64, out
    cells,  # (1,) int64, out: how many cells the keys number
    P,
    B,
    size,  # metres, a float64 bit by bit
    BLOCK: tl.constexpr,
):
    """Keys as pcreg.kernels.cells packs them, in the order of clouds and their cells."""
    size = from_bits(size)
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < P
    key = tl.load(cloud + n, mask=inside, other=0).to(tl.int64)
    n_cells = tl.maximum(B, 1).to(tl.float64)
    for axis in tl.static_range(3):
        lowest = tl.floor(tl.load(lower + axis) / size)
        shape = tl.floor(tl.load(upper + axis) / size) - lowest + 1
        n_cells *= shape
        cell = tl.floor(tl.load(points + 3 * n + axis, mask=inside, other=0.0) / size)
        key = key * shape.to(tl.int64) + (cell - lowest).to(tl.int64)
        if tl.program_id(0) == 0:
            tl.store(frame + axis, 0.0)
            tl.store(frame + 3 + axis, 0.0)
    tl.store(keys + n, key, mask=inside)
    if tl.program_id(0) == 0:
        tl.store(frame + 6, size)
        # Of coordinates that are not finite no comparison is true
        tl.store(cells, tl.where((n_cells >= 1) & (n_cells < 9e18), n_cells, 9e18).to(tl.int64))
