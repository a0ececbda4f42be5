"""Range images, and what stands in front of them: a program per block of points, all views one by one."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels import range_image
from pcreg.kernels.range_image import Grid, Views
from pcreg.kernels.triton.angles import arctan2
from pcreg.kernels.triton.bits import bits, from_bits
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.rows import three_of

BLOCK = 128  # points of a program
COUNTS = tl.constexpr(range_image.COUNTS)


def views_of(points: Tensor, view: Tensor | None, origins: Tensor, grid: Grid) -> Views:
    """What pcreg.kernels.free_space says."""
    ranges = points.new_full((len(origins), grid.rows * grid.columns), torch.inf)
    arguments = points, view, origins, ranges, len(points), *_numbers(grid)
    launch(_see, -(-len(points) // BLOCK), arguments, {"BLOCK": BLOCK}, view is None)
    return Views(origins, ranges, grid)


def look(
    views: Views, points: Tensor, motions: Tensor, margin: float, near: float, touched: Tensor | None = None
) -> Tensor:
    """What pcreg.kernels.free_space says."""
    N, H = len(points), len(motions)
    blocks = -(-N // BLOCK)
    counts = torch.zeros(H, range_image.COUNTS, dtype=torch.int32, device=points.device)
    numbers = N, len(views.origins), blocks, bits(margin), bits(near), *_numbers(views.grid)
    arguments = points, motions, views.origins, views.ranges, touched, counts, *numbers
    launch(_look, H * blocks, arguments, {"BLOCK": BLOCK}, touched is None)
    return counts


def _numbers(grid: Grid) -> tuple[int, int, int]:
    return grid.rows, grid.columns, bits(grid.radians)


@triton.jit(
    do_not_specialize=["N", "rows", "columns", "radians"],
    do_not_specialize_on_alignment=["points", "view", "origins", "ranges"],
)
def _see(
    points,  # (N, 3) float64
    view,  # (N,) int32, or None
    origins,  # (V, 3) float64
    ranges,  # (V, rows columns) float64, infinity; changed
    N,
    rows,  # of cells, like the next
    columns,
    radians,  # of a cell, a float64 bit by bit
    BLOCK: tl.constexpr,
):
    radians = from_bits(radians)
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    v = tl.zeros_like(n) if view is None else tl.load(view + n, mask=inside, other=-1).to(tl.int64)
    inside = inside & (v >= 0)
    x, y, z = three_of(points, n, 3, 0, inside)
    ox, oy, oz = three_of(origins, v, 3, 0, inside)
    cell, distance = _direction(x - ox, y - oy, z - oz, rows, columns, radians)
    tl.atomic_min(ranges + v * (rows * columns) + cell, distance, mask=inside, sem="relaxed")


@triton.jit(
    do_not_specialize=["N", "V", "blocks", "margin", "near", "rows", "columns", "radians"],
    do_not_specialize_on_alignment=["points", "motions", "origins", "ranges", "touched", "counts"],
)
def _look(
    points,  # (N, 3) float64
    motions,  # (H, 4, 4) float64
    origins,  # (V, 3) float64
    ranges,  # (V, rows columns) float64
    touched,  # (N,) bool, or None
    counts,  # (H, COUNTS) int32, zeros, out
    N,
    V,
    blocks,
    margin,  # metres, a float64 bit by bit, like the next
    near,
    rows,  # of cells, like the next
    columns,
    radians,  # of a cell, a float64 bit by bit
    BLOCK: tl.constexpr,
):
    margin, near, radians = from_bits(margin), from_bits(near), from_bits(radians)
    h = tl.program_id(0) // blocks
    n = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    x, y, z = three_of(points, n, 3, 0, inside)
    T = motions + 16 * h.to(tl.int64)
    mx = tl.load(T) * x + tl.load(T + 1) * y + tl.load(T + 2) * z + tl.load(T + 3)
    my = tl.load(T + 4) * x + tl.load(T + 5) * y + tl.load(T + 6) * z + tl.load(T + 7)
    mz = tl.load(T + 8) * x + tl.load(T + 9) * y + tl.load(T + 10) * z + tl.load(T + 11)
    in_front, covered = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    close = in_front
    for v in range(0, V):
        origin = origins + 3 * v
        dx, dy, dz = mx - tl.load(origin), my - tl.load(origin + 1), mz - tl.load(origin + 2)
        cell, distance = _direction(dx, dy, dz, rows, columns, radians)
        seen = tl.load(ranges + v * (rows * columns) + cell, mask=inside, other=float("inf"))
        is_covered = seen < float("inf")
        covered += is_covered.to(tl.int32)
        in_front += (is_covered & (distance < seen - margin)).to(tl.int32)
        close += (is_covered & (distance < seen - near)).to(tl.int32)
    touches = n < 0 if touched is None else tl.load(touched + n, mask=inside, other=0) != 0
    against = ((close > 0) & (touches == 0)).to(tl.int32)
    confirmed = ((covered > 0) & touches).to(tl.int32)
    out = counts + COUNTS * h.to(tl.int64)
    tl.atomic_add(out, tl.sum(in_front), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(covered), sem="relaxed")
    tl.atomic_add(out + 2, tl.sum(against), sem="relaxed")
    tl.atomic_add(out + 3, tl.sum(confirmed), sem="relaxed")


@triton.jit
def _direction(x, y, z, rows, columns, radians):
    """The cell, int64, in which a point is seen from zero, and its distance."""
    flat = x * x + y * y
    row = tl.floor(arctan2(z, tl.sqrt(flat)) / radians).to(tl.int64)
    column = tl.floor(arctan2(y, x) / radians).to(tl.int64)
    return (row + rows // 2) * columns + column + columns // 2, tl.sqrt(flat + z * z)
