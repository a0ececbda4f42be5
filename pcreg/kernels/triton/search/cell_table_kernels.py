"""The kernels of kernels/triton/search/cell_table.py, in the order in which they run.

measure     the extents of parts of the points
clear       the frame around them, and zeros for its cells
count       how many points each cell has, and each span of cells
begin       where those of each cell begin
place       the points in the order of their cells
"""

import triton
import triton.language as tl

from pcreg.kernels.triton.bits import from_bits
from pcreg.kernels.triton.search.index import all_cells, cells_along, number_of_cell

# float64: the frame, and from a multiple of 16 bytes on lower corners of parts by axis, then upper ones.
PARTS, EXTENTS = tl.constexpr(256), tl.constexpr(8)
BOX = EXTENTS.value + 6 * PARTS.value


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points"])
def measure(
    box,  # (BOX,), out: the extents of a part, infinite if a coordinate is not finite
    points,  # (P, 3)
    P,
    BLOCK: tl.constexpr,
):
    axis = tl.arange(0, 4)
    low = tl.full((BLOCK, 4), float("inf"), points.dtype.element_ty)
    high = -low
    for block in range(tl.program_id(0), tl.cdiv(P, BLOCK), tl.num_programs(0)):
        n = block * BLOCK + tl.arange(0, BLOCK)[:, None].to(tl.int64)
        there = (n < P) & (axis[None, :] < 3)
        coordinate = tl.load(points + 3 * n + axis[None, :], mask=there, other=0.0)
        finite = tl.abs(coordinate) < float("inf")
        low = tl.where(there, tl.minimum(low, tl.where(finite, coordinate, float("-inf"))), low)
        high = tl.where(there, tl.maximum(high, tl.where(finite, coordinate, float("inf"))), high)
    extents = box + EXTENTS + axis * PARTS + tl.program_id(0)
    tl.store(extents, tl.min(low, 0).to(tl.float64), mask=axis < 3)
    tl.store(extents + 3 * PARTS, tl.max(high, 0).to(tl.float64), mask=axis < 3)


@triton.jit
def _extent(box, axis, n_parts):
    """Where the points begin and end along an axis."""
    part = tl.arange(0, PARTS)
    low = tl.load(box + EXTENTS + axis * PARTS + part, mask=part < n_parts, other=float("inf"))
    high = tl.load(box + EXTENTS + (3 + axis) * PARTS + part, mask=part < n_parts, other=float("-inf"))
    return tl.min(low, 0), tl.max(high, 0)


@triton.jit(do_not_specialize=["edge", "n_clouds", "n_parts", "room", "P"])
def clear(
    box,  # (BOX,), out: the frame, without cells if they have no room
    starts,  # (room + 1,), out: zeros
    scratch,  # (2 P + spans,), out: zeros, of spans
    edge,  # metres, a float64 bit by bit
    n_clouds,
    n_parts,
    room,  # cells
    P,
    SPAN: tl.constexpr,
):
    edge = from_bits(edge)
    low_x, high_x = _extent(box, 0, n_parts)
    low_y, high_y = _extent(box, 1, n_parts)
    low_z, high_z = _extent(box, 2, n_parts)
    n_cells = tl.maximum(n_clouds, 1).to(tl.float64) * (tl.floor((high_x - low_x) / edge) + 1)
    n_cells *= (tl.floor((high_y - low_y) / edge) + 1) * (tl.floor((high_z - low_z) / edge) + 1)
    fits = (n_cells >= 1) & (n_cells <= room)
    if tl.program_id(0) == 0:
        _store_frame(box, 0, low_x, high_x, edge, fits)
        _store_frame(box, 1, low_y, high_y, edge, fits)
        _store_frame(box, 2, low_z, high_z, edge, fits)
        tl.store(box + 6, edge)
    n_starts = tl.where(fits, n_cells + 1, 0.0).to(tl.int64)
    sums = scratch + 2 * P.to(tl.int64)
    for span in range(tl.program_id(0), tl.cdiv(n_starts, SPAN), tl.num_programs(0)):
        n = span * SPAN + tl.arange(0, SPAN)  # int64, as n_starts is
        tl.store(starts + n, tl.zeros((SPAN,), tl.int32), mask=n < n_starts)
        tl.store(sums + span, tl.zeros((), tl.int32))


@triton.jit
def _store_frame(box, axis, low, high, edge, fits):
    tl.store(box + axis, tl.where(fits, low, 0.0))
    tl.store(box + 3 + axis, tl.where(fits, high, -edge))


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points", "cloud"])
def count(
    box,
    starts,  # out: how many points each cell has, behind it
    scratch,  # out: the cell of each point, how many of the cell were counted before it, sums of spans
    points,  # (P, 3)
    cloud,  # (P,), or None
    P,
    SPAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    if cells_along(box, 0) == 0:
        return
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cell = number_of_cell(points, cloud, box, n, n < P).to(tl.int32)
    slot = tl.atomic_add(starts + 1 + cell, 1, mask=n < P, sem="relaxed")
    tl.store(scratch + n, cell, mask=n < P)
    tl.store(scratch + P + n, slot, mask=n < P)
    tl.atomic_add(scratch + 2 * P.to(tl.int64) + (1 + cell) // SPAN, 1, mask=n < P, sem="relaxed")


@triton.jit(do_not_specialize=["n_clouds", "P"])
def begin(
    box,
    starts,  # what `count` leaves; out: where each cell begins
    scratch,
    n_clouds,
    P,
    SPAN: tl.constexpr,
):
    """Each program takes some spans in a row, and adds up those before: no scan waits for another."""
    if cells_along(box, 0) == 0:
        return
    n_starts = all_cells(n_clouds, box) + 1
    spans = tl.cdiv(n_starts, SPAN)
    each = tl.cdiv(spans, tl.num_programs(0))
    first = tl.program_id(0) * each
    end = tl.minimum(first + each, spans)
    sums, n = scratch + 2 * P.to(tl.int64), tl.arange(0, SPAN)
    before = tl.zeros((), tl.int32)
    for span in range(0, tl.where(first < end, first, 0), SPAN):
        before += tl.sum(tl.load(sums + span + n, mask=span + n < first, other=0))
    for span in range(first, end):
        at = span * SPAN + n
        counts = tl.load(starts + at, mask=at < n_starts, other=0)
        tl.store(starts + at, before + tl.cumsum(counts, 0), mask=at < n_starts)
        before += tl.sum(counts)


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points"])
def place(
    box,
    starts,
    scratch,
    points,  # (P, 3)
    points_out,  # (P, 3), out, like the next
    order,  # (P,)
    P,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # Without cells any order does: centres are taken in it before they find nothing.
    has_cell = (n < P) & (cells_along(box, 0) > 0)
    cell, slot = (
        tl.load(scratch + n, mask=has_cell, other=0),
        tl.load(scratch + P + n, mask=has_cell, other=0),
    )
    at = tl.where(has_cell, (tl.load(starts + cell, mask=has_cell, other=0) + slot).to(tl.int64), n)
    tl.store(order + at, n, mask=n < P)
    for axis in tl.static_range(3):
        coordinate = tl.load(points + 3 * n + axis, mask=n < P, other=0.0)
        tl.store(points_out + 3 * at + axis, coordinate, mask=n < P)
