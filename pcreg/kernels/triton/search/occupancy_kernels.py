"""The kernels of kernels/triton/search/occupancy.py: which voxels are occupied, and by which points.

A word holds a bit for each of 32 cells and, above them, its rank: how many occupied cells come before it in
some order of the words. One load tells whether a cell is occupied, and its own rank.

Cells are numbered in mixed radix: cloud, x, y, z. Each row, slab and cloud of cells ends with as many empty
ones as lie between two cells that a kernel sees, its `reach`, and as many come before the first: so the cells
that a centre sees exist, and their numbers differ from its own by the same for all centres.
"""

import triton
import triton.language as tl

from pcreg.kernels.triton.search.index import lower_bound

# What is known, int64: how far the points' box extends below and above the first point, how many voxels are
# occupied, and the bounds of the segments, K + 1 from a multiple of 16 bytes on.
BELOW, ABOVE, OCCUPIED, SEGMENTS = map(tl.constexpr, (0, 3, 6, 8))
CELLS_OF_WORD = tl.constexpr(32)
FAR = tl.constexpr(1 << 61)  # the longest extent that is told from longer ones
NOWHERE = tl.constexpr(-1)  # the cell of a centre that sees no cell of the points' box
EMPTY = tl.constexpr(-1)  # source of a bucket without points, kernels/tiles.py


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points"])
def measure(
    known,  # (SEGMENTS + K + 1,) zeros, out: BELOW and ABOVE, which are counted up from zero
    points,  # (P, 3) int64
    P,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for axis in tl.static_range(3):
        first = tl.load(points + axis)
        cell = tl.load(points + 3 * tl.minimum(n, P - 1) + axis)
        tl.atomic_max(known + BELOW + axis, tl.max(_beyond(first, cell)), sem="relaxed")
        tl.atomic_max(known + ABOVE + axis, tl.max(_beyond(cell, first)), sem="relaxed")


@triton.jit
def _beyond(high, low):
    """high - low, from 0 to FAR. Where the difference of int64 wraps around it is FAR."""
    difference = high - low
    return tl.where(high > low, tl.where(difference > 0, tl.minimum(difference, FAR), FAR), 0)


@triton.jit
def _width(known, axis, reach):
    """Cells along an axis, and the empty ones behind them, int64."""
    return tl.load(known + BELOW + axis) + tl.load(known + ABOVE + axis) + 1 + reach


@triton.jit
def _n_words(known, n_clouds, reach, room):
    """How many words hold all cells, int64; none if they have no `room`."""
    x, y, z = _width(known, 0, reach), _width(known, 1, reach), _width(known, 2, reach)
    area = y.to(tl.float64) * z.to(tl.float64)
    cells = n_clouds * x.to(tl.float64) * area + reach * (area + z.to(tl.float64) + 1)
    words = tl.ceil(cells / CELLS_OF_WORD)
    return tl.where(words <= room, words, 0.0).to(tl.int64)


@triton.jit(do_not_specialize=["n_clouds", "reach", "room"])
def clear(
    known,
    words,  # (room,) int64, out: zeros
    n_clouds,
    reach,
    room,
    BLOCK: tl.constexpr,
):
    n_words = _n_words(known, n_clouds, reach, room)
    for block in range(tl.program_id(0), tl.cdiv(n_words, BLOCK), tl.num_programs(0)):
        w = block * BLOCK + tl.arange(0, BLOCK)  # int64, as n_words is
        tl.store(words + w, tl.zeros((BLOCK,), tl.int64), mask=w < n_words)


@triton.jit(
    do_not_specialize=["N", "n_ends", "steps", "stride", "n_clouds", "reach", "room"],
    do_not_specialize_on_alignment=["points", "cells", "ends"],
)
def number(
    known,
    points,  # (P, 3) int64
    cells,  # (N, 3) int64, the same or those of centres
    ends,  # (n_ends,) int64, the rows before the end of each cloud
    words,  # (room,), out: with MARK the bits of the cells
    numbers,  # (N,) int64, out
    N,
    n_ends,
    steps,  # of a binary search among ends
    stride,
    n_clouds,  # of the points
    reach,
    room,
    MARK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The number of each cell, times `stride`; NOWHERE if its kernel does not meet the points' box."""
    if _n_words(known, n_clouds, reach, room) == 0:
        return
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    exists = n < N
    cloud = tl.minimum(lower_bound(ends, n_ends, n + 1, exists, steps), n_ends - 1)
    number, meets = cloud, exists & (cloud < n_clouds)
    before = tl.zeros((), tl.int64)  # empty cells, the first ones
    half = reach // 2
    for axis in tl.static_range(3):
        lowest = tl.load(points + axis) - tl.load(known + BELOW + axis)
        cell = tl.load(cells + 3 * n + axis, mask=exists, other=0) * stride - lowest
        width = _width(known, axis, reach)
        meets &= (cell >= -half) & (cell < width - half)
        number, before = number * width + cell, before * width + reach
    number += before
    if MARK:
        bit = tl.full((BLOCK,), 1, tl.int64) << (number & 31)
        tl.atomic_or(words + (number >> 5), bit, mask=exists, sem="relaxed")
    tl.store(numbers + n, tl.where(meets, number, NOWHERE), mask=exists)


@triton.jit
def _ones(bits):
    """How many bits of an int32 are set, int32."""
    bits = bits - ((bits >> 1) & 0x55555555)
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    bits += bits >> 8
    return (bits + (bits >> 16)) & 63


@triton.jit(do_not_specialize=["n_clouds", "reach", "room"])
def rank(
    known,  # out: OCCUPIED
    words,  # (room,), out: their ranks
    n_clouds,
    reach,
    room,
    BLOCK: tl.constexpr,
):
    """Blocks of words are ranked in the order in which they come, so that nobody has to wait."""
    n_words = _n_words(known, n_clouds, reach, room)
    for block in range(tl.program_id(0), tl.cdiv(n_words, BLOCK), tl.num_programs(0)):
        w = block * BLOCK + tl.arange(0, BLOCK)  # int64, as n_words is
        word = tl.load(words + w, mask=w < n_words, other=0)
        ones = _ones(word.to(tl.int32))
        first = tl.atomic_add(known + OCCUPIED, tl.sum(ones).to(tl.int64), sem="relaxed")
        before = first + (tl.cumsum(ones, 0) - ones).to(tl.int64)
        tl.store(words + w, word | (before << 32), mask=w < n_words)


@triton.jit
def _rank_of(word, cell):
    """How many occupied cells there are before a cell of the word, int32."""
    below = (1 << (cell & 31).to(tl.int32)) - 1
    return (word >> 32).to(tl.int32) + _ones(word.to(tl.int32) & below)


@triton.jit(do_not_specialize=["P"])
def settle(
    known,
    words,
    numbers,  # (P,) of the points
    rows,  # (P,) int32, out: the row of the point of each rank
    P,
    BLOCK: tl.constexpr,
):
    if tl.load(known + OCCUPIED) != P:
        return
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.load(numbers + n, mask=n < P, other=0)
    word = tl.load(words + (cell >> 5), mask=n < P, other=0)
    tl.store(rows + _rank_of(word, cell), n.to(tl.int32), mask=n < P)


@triton.jit(do_not_specialize=["P", "N"])
def find(
    known,
    words,
    rows,  # (P,)
    numbers,  # (N,) of the centres
    source,  # (K, N) int32, out: the row that each sees, or EMPTY
    counts,  # (K, blocks) int32, out: how many see one, of BLOCK centres
    P,
    N,
    KERNEL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """What BLOCK centres see in a slab of their kernels."""
    if tl.load(known + OCCUPIED) != P:
        return
    HALF: tl.constexpr = KERNEL // 2
    block, x = tl.program_id(0) // KERNEL, tl.program_id(0) % KERNEL
    blocks = tl.num_programs(0) // KERNEL
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(numbers + i, mask=i < N, other=NOWHERE)
    seen = own != NOWHERE
    width_y, width_z = _width(known, 1, KERNEL - 1), _width(known, 2, KERNEL - 1)
    for y in tl.static_range(KERNEL):
        cell = own + ((x - HALF) * width_y + (y - HALF)) * width_z - HALF
        word = tl.load(words + (cell >> 5), mask=seen, other=0)
        before = _rank_of(word, cell)
        for z in tl.static_range(KERNEL):
            if z > 0:
                cell += 1
                new = seen & ((cell & 31) == 0)
                word = tl.where(new, tl.load(words + (cell >> 5), mask=new, other=0), word)
                before = tl.where(new, (word >> 32).to(tl.int32), before)
            occupied = (word.to(tl.int32) >> (cell & 31).to(tl.int32)) & 1
            k = (x * KERNEL + y) * KERNEL + z
            j = tl.load(rows + before, mask=occupied != 0, other=EMPTY)
            tl.store(source + k.to(tl.int64) * N + i, j, mask=i < N)
            tl.store(counts + k.to(tl.int64) * blocks + block, tl.sum(occupied))
            before += occupied


@triton.jit(do_not_specialize=["P", "blocks", "K"])
def segment(
    known,  # out: SEGMENTS
    counts,  # (K, blocks), out: how many triplets of the segment come before each block
    P,
    blocks,
    K,
    CELLS: tl.constexpr,  # a power of two, more than K
    BLOCK: tl.constexpr,
):
    """A program for each segment, which counts up where those behind it begin."""
    if tl.load(known + OCCUPIED) != P:
        return
    counts += tl.program_id(0).to(tl.int64) * blocks
    length = tl.zeros((), tl.int32)
    for first in range(0, blocks, BLOCK):
        b = first + tl.arange(0, BLOCK)
        count = tl.load(counts + b, mask=b < blocks, other=0)
        tl.store(counts + b, length + tl.cumsum(count, 0) - count, mask=b < blocks)
        length += tl.sum(count)
    k = tl.arange(0, CELLS)
    behind = (k > tl.program_id(0)) & (k <= K)
    tl.atomic_add(known + SEGMENTS + k, tl.zeros((CELLS,), tl.int64) + length, mask=behind, sem="relaxed")


@triton.jit(do_not_specialize=["N", "blocks"])
def list_found(
    known,
    counts,  # (K, blocks)
    source,  # (K, N)
    i_out,  # (T,) int32, out, like the next
    j_out,
    N,
    blocks,
    COUNTED: tl.constexpr,  # centres of a block that was counted
    BLOCK: tl.constexpr,  # of a program, several such blocks
):
    """The i and j of all buckets, which are in the order of triplets."""
    groups = tl.cdiv(N, BLOCK)
    k, group = tl.program_id(0) // groups, tl.program_id(0) % groups
    i = group.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(counts + k.to(tl.int64) * blocks + group * (BLOCK // COUNTED))
    first += tl.load(known + SEGMENTS + k)
    j = tl.load(source + k.to(tl.int64) * N + i, mask=i < N, other=EMPTY)
    found = (j != EMPTY).to(tl.int32)
    at = first + (tl.cumsum(found, 0) - found)
    tl.store(i_out + at, i.to(tl.int32), mask=found != 0)
    tl.store(j_out + at, j, mask=found != 0)
