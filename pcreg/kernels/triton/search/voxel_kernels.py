"""The kernels of kernels/triton/search/voxel_run.py: which voxels each kernel sees, and their points."""

import triton
import triton.language as tl

from pcreg.kernels.triton.search.index import all_cells, cells_along, lower_bound
from pcreg.kernels.triton.search.table import (
    CENTRES,
    CLOUD,
    COLUMNS,
    FIRST_OFFSET,
    FIRST_ORDERING,
    FIRST_PROGRAM,
    FRAME,
    HALF_WIDTH,
    KERNEL_SIZE,
    LOOKUP,
    MIRRORED,
    N_CLOUDS,
    N_IN,
    N_OUT,
    ORDER,
    PLACES,
    SHARES,
    STRIDE,
    search_of_program,
)

NOWHERE = tl.constexpr(-1)  # place of a voxel without points
LARGEST = tl.constexpr(1 << 62)
LENGTH, SEVERAL_IN_ONE, CELLS_NUMBERED = map(tl.constexpr, range(3))  # columns of `found`
LISTED = tl.constexpr(4)  # blocks that list_voxels takes at a time: the BUCKETS by which the table counts


@triton.jit(do_not_specialize=["n_searches", "steps"])
def find_voxels(
    table,  # (searches, COLUMNS)
    n_searches,
    steps,  # of a binary search in the longest index
    counts,  # (1 + LISTED * all orderings,) int64, out: the triplets of BLOCK buckets, behind each
    found,  # (searches, 3) int64, zeros; out: SEVERAL_IN_ONE
    SEARCHES: tl.constexpr,
    BLOCK: tl.constexpr,  # centres
    DTYPE: tl.constexpr,  # of the coordinates
    SEVERAL: tl.constexpr,  # a voxel may hold several points; else it is only told that one does
    COUNT: tl.constexpr,  # how many points a voxel holds, in place of where they begin
):
    """Where among the keys of the index the voxel of every bucket begins.

    The voxels along z that a centre sees follow one another in the index: one search finds all of them.
    """
    search, program = search_of_program(table, n_searches, FIRST_PROGRAM, SEARCHES)
    row = table + search * COLUMNS
    shares, n_out = tl.load(row + SHARES), tl.load(row + N_OUT)
    block = program // shares
    i = block * BLOCK + tl.arange(0, BLOCK)
    exists = i < n_out
    cloud = tl.load(tl.load(row + CLOUD).to(tl.pointer_type(tl.int32)) + i, mask=exists, other=0).to(tl.int64)
    keys = tl.load(row + LOOKUP).to(tl.pointer_type(tl.int64))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    places = tl.load(row + PLACES).to(tl.pointer_type(tl.int32))
    n_in = tl.load(row + N_IN)
    shape_x, shape_y, shape_z = cells_along(frame, 0), cells_along(frame, 1), cells_along(frame, 2)
    kernel_size, half = tl.load(row + KERNEL_SIZE), tl.load(row + HALF_WIDTH)
    stride, mirrored = tl.load(row + STRIDE), tl.load(row + MIRRORED)
    edge = tl.load(frame + 6)
    edge = tl.where(mirrored != 0, edge / stride, edge * stride)  # of the level of the centres
    centres = tl.load(row + CENTRES).to(tl.pointer_type(DTYPE)) + 3 * i
    cell_x = _cell(tl.load(centres, mask=exists, other=0), tl.load(frame), edge)
    cell_y = _cell(tl.load(centres + 1, mask=exists, other=0), tl.load(frame + 1), edge)
    cell_z = _cell(tl.load(centres + 2, mask=exists, other=0), tl.load(frame + 2), edge)
    blocks = tl.cdiv(n_out, BLOCK * LISTED) * LISTED
    counts += 1 + tl.load(row + FIRST_ORDERING) * LISTED + block
    several = tl.zeros((BLOCK,), tl.int32)

    for place in range(program % shares, kernel_size * kernel_size, shares):
        row_x, seen_x = _voxel(cell_x, place // kernel_size - half, stride, mirrored, shape_x)
        row_y, seen_y = _voxel(cell_y, place % kernel_size - half, stride, mirrored, shape_y)
        seen = exists & seen_x & seen_y
        row_key = ((cloud * shape_x + row_x) * shape_y + row_y) * shape_z
        low = stride * cell_z - half
        if mirrored != 0:
            low = (tl.maximum(cell_z - half, 0) + stride - 1) // stride
        at = lower_bound(keys, n_in, row_key + tl.maximum(low, 0), seen, steps)
        key = tl.load(keys + at, mask=seen & (at < n_in), other=LARGEST)
        for n in range(kernel_size):  # in the order of the voxels
            step = tl.where(mirrored != 0, half - n, n - half)
            row_z, seen_z = _voxel(cell_z, step, stride, mirrored, shape_z)
            wanted = row_key + row_z
            first, member = at, seen & seen_z & (key == wanted)
            size = member.to(tl.int32)
            at += size
            key = tl.where(member, tl.load(keys + at, mask=member & (at < n_in), other=LARGEST), key)
            member &= key == wanted
            if SEVERAL:
                while tl.max(member.to(tl.int32), 0) > 0:
                    size += member.to(tl.int32)
                    at += member.to(tl.int64)
                    following = tl.load(keys + at, mask=member & (at < n_in), other=LARGEST)
                    key = tl.where(member, following, key)
                    member &= key == wanted
            else:
                several |= member.to(tl.int32)
            k = place * kernel_size + step + half
            value = size if COUNT else tl.where(size > 0, first, NOWHERE).to(tl.int32)
            tl.store(places + k * n_out + i, value, mask=exists)
            if not COUNT:
                tl.store(counts + k * blocks, tl.sum(size).to(tl.int64))
    if not SEVERAL and tl.max(several, 0) > 0:
        tl.store(found + search * 3 + SEVERAL_IN_ONE, tl.full((), 1, tl.int64))


@triton.jit
def _cell(coordinate, lower, edge):
    return tl.floor((coordinate.to(tl.float64) - lower) / edge).to(tl.int64)


@triton.jit
def _voxel(cell, step, stride, mirrored, shape):
    """The voxel that a centre's kernel finds `step` away along an axis, and whether there is one."""
    voxel = stride * cell + step
    exists = voxel >= 0
    if mirrored != 0:
        exchanged = cell - step  # = stride * the voxel sought
        voxel = exchanged // stride
        exists = (exchanged >= 0) & (voxel * stride == exchanged)
    return voxel, exists & (voxel < shape)


@triton.jit(do_not_specialize=["n_searches"])
def segment_voxels(
    table,
    n_searches,
    begins,  # (1 + LISTED * all orderings,) int64: the triplets before each BLOCK buckets
    k_offsets,  # of all searches, out
    found,  # (searches, 3) int64, out but for SEVERAL_IN_ONE
    CELLS: tl.constexpr,  # a power of two, more than K
    BLOCK: tl.constexpr,
):
    """The bounds of every search's segments, and what the host has to know."""
    search = tl.program_id(0)
    row = table + search * COLUMNS
    kernel_size, blocks = tl.load(row + KERNEL_SIZE), tl.cdiv(tl.load(row + N_OUT), BLOCK * LISTED) * LISTED
    K = kernel_size * kernel_size * kernel_size
    k = tl.arange(0, CELLS)
    begins += tl.load(row + FIRST_ORDERING) * LISTED
    ends = tl.load(begins + k * blocks, mask=k <= K, other=0) - tl.load(begins)
    tl.store(k_offsets + tl.load(row + FIRST_OFFSET) + k, ends, mask=k <= K)
    tl.store(found + search * 3 + LENGTH, tl.load(begins + K * blocks) - tl.load(begins))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    tl.store(found + search * 3 + CELLS_NUMBERED, all_cells(tl.load(row + N_CLOUDS), frame))


@triton.jit(do_not_specialize=["n_searches"])
def list_voxels(
    table,
    n_searches,
    begins,  # (1 + LISTED * all orderings,)
    i_out,  # (all triplets,) int32, out, like the next
    j_out,
    SEARCHES: tl.constexpr,
    BLOCK: tl.constexpr,
    SEVERAL: tl.constexpr,  # else the source of a bucket replaces its place
):
    """Write i and j, in ascending order, as they stand in the index."""
    search, program = search_of_program(table, n_searches, FIRST_ORDERING, SEARCHES)
    row = table + search * COLUMNS
    n_in, n_out = tl.load(row + N_IN), tl.load(row + N_OUT)
    keys = tl.load(row + LOOKUP).to(tl.pointer_type(tl.int64))
    order = tl.load(row + ORDER).to(tl.pointer_type(tl.int64))
    blocks = tl.cdiv(n_out, BLOCK * LISTED)
    k, i = program // blocks, program % blocks * BLOCK * LISTED + tl.arange(0, BLOCK * LISTED)
    places = tl.load(row + PLACES).to(tl.pointer_type(tl.int32)) + k * n_out + i
    at = tl.load(places, mask=i < n_out, other=NOWHERE).to(tl.int64)
    member = at != NOWHERE
    size = member.to(tl.int32)
    if SEVERAL:
        key = tl.load(keys + at, mask=member, other=LARGEST)
        while tl.max(member.to(tl.int32), 0) > 0:
            member &= tl.load(keys + at + size, mask=member & (at + size < n_in), other=LARGEST) == key
            size += member.to(tl.int32)
    first = tl.load(begins + tl.program_id(0) * LISTED) + tl.cumsum(size, 0) - size
    for n in range(tl.max(size, 0) if SEVERAL else 1):
        j = tl.load(order + at + n, mask=n < size, other=0).to(tl.int32)
        tl.store(j_out + first + n, j, mask=n < size)
        tl.store(i_out + first + n, i.to(tl.int32), mask=n < size)
        if not SEVERAL:
            tl.store(places, j, mask=size > 0)
