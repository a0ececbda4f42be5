"""Range images of a surface on cubes around many places, and what they hide of it."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.range_image import OcclusionLimits
from pcreg.kernels.triton.angles import PI, arctan
from pcreg.kernels.triton.bits import bits, from_bits
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.rows import three_of

BLOCK = 128  # points of a program


def hidden_and_edge_on(places: Tensor, points: Tensor, normals: Tensor, limits: OcclusionLimits) -> Tensor:
    """What pcreg.kernels.occlusion says, by two launches."""
    P, N, F = len(places), len(points), limits.cells
    blocks = -(-N // BLOCK)
    ranges = points.new_full((P, 6 * F * F), torch.inf)
    counts = torch.zeros(P, 2, dtype=torch.int32, device=points.device)
    constants = {"BLOCK": BLOCK}
    launch(_see, P * blocks, (places, points, ranges, N, blocks, F), constants, None)
    numbers = N, blocks, F, bits(limits.margin), bits(limits.width), bits(limits.min_cosine)
    launch(_hide, P * blocks, (places, points, normals, ranges, counts, *numbers), constants, None)
    return counts


@triton.jit(
    do_not_specialize=["N", "blocks", "cells"],
    do_not_specialize_on_alignment=["places", "points", "ranges"],
)
def _see(
    places,  # (P, 3) float64, like the next
    points,  # (N, 3)
    ranges,  # (P, 6 cells cells) float64, infinity; changed
    N,
    blocks,
    cells,  # to a side of a face
    BLOCK: tl.constexpr,
):
    p = (tl.program_id(0) // blocks).to(tl.int64)
    n = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x, y, z, distance = _ray(places + 3 * p, points, n, n < N)
    face, row, column = _cell(x, y, z, cells)
    at = ranges + ((6 * p + face) * cells + row) * cells + column
    tl.atomic_min(at, distance, mask=n < N, sem="relaxed")


@triton.jit(
    do_not_specialize=["N", "blocks", "cells", "margin", "width", "min_cosine"],
    do_not_specialize_on_alignment=["places", "points", "normals", "ranges", "counts"],
)
def _hide(
    places,  # (P, 3) float64, like the next three
    points,  # (N, 3)
    normals,  # (N, 3)
    ranges,  # (P, 6 cells cells)
    counts,  # (P, 2) int32, zeros, out
    N,
    blocks,
    cells,  # to a side of a face
    margin,  # metres, a float64 bit by bit, like the next two
    width,  # radians
    min_cosine,
    BLOCK: tl.constexpr,
):
    margin, width, min_cosine = from_bits(margin), from_bits(width), from_bits(min_cosine)
    p = (tl.program_id(0) // blocks).to(tl.int64)
    n = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    x, y, z, distance = _ray(places + 3 * p, points, n, inside)
    face, row, column = _cell(x, y, z, cells)
    occluder = tl.zeros((BLOCK,), tl.float64)
    for step in tl.static_range(9):
        r, c = row + (step // 3 - 1), column + (step % 3 - 1)
        on_face = inside & (r >= 0) & (r < cells) & (c >= 0) & (c < cells)
        at = ranges + ((6 * p + face) * cells + r) * cells + c
        occluder = tl.maximum(occluder, tl.load(at, mask=on_face, other=float("inf")))
    nx, ny, nz = three_of(normals, n, 3, 0, inside)
    cosine = tl.minimum(tl.abs(x * nx + y * ny + z * nz) / tl.maximum(distance, 1e-9), 1.0)
    slope = tl.sqrt(1 - cosine * cosine) / tl.maximum(cosine, min_cosine)
    edge_on = inside & (cosine < min_cosine)
    behind = inside & (distance - margin - distance * width * slope > occluder)
    tl.atomic_add(counts + 2 * p, tl.sum((behind & (edge_on == 0)).to(tl.int32)), sem="relaxed")
    tl.atomic_add(counts + 2 * p + 1, tl.sum(edge_on.to(tl.int32)), sem="relaxed")


@triton.jit
def _ray(place, points, n, inside):
    """From a place to points: x, y, z and the length."""
    x, y, z = three_of(points, n, 3, 0, inside)
    x, y, z = x - tl.load(place), y - tl.load(place + 1), z - tl.load(place + 2)
    return x, y, z, tl.sqrt((x * x + y * y) + z * z)


@triton.jit
def _cell(x, y, z, cells):
    """Face, row and column, int64, of a ray on the cube: of equally long coordinates the first counts."""
    is_z = tl.abs(z) > tl.maximum(tl.abs(x), tl.abs(y))
    is_y = (tl.abs(y) > tl.abs(x)) & (is_z == 0)
    main = tl.where(is_z, z, tl.where(is_y, y, x))
    next_axis = tl.where(is_z, x, tl.where(is_y, z, y))
    last_axis = tl.where(is_z, y, tl.where(is_y, x, z))
    divisor = tl.maximum(tl.abs(main), 1e-9)
    face = tl.where(is_z, 4, tl.where(is_y, 2, 0)).to(tl.int64) + (main > 0).to(tl.int64)
    return face, _along_edge(next_axis / divisor, cells), _along_edge(last_axis / divisor, cells)


@triton.jit
def _along_edge(ratio, cells):
    within = ((arctan(ratio) * (2 / PI) + 0.5) * cells).to(tl.int64)
    return tl.minimum(tl.maximum(within, 0), cells - 1)
