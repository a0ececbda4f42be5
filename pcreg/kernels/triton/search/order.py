"""Kernels that order the triplets of several searches and arrange them as Tiles (pcreg.kernels.tiles)."""

import triton
import triton.language as tl

from pcreg.kernels import tiles
from pcreg.kernels.triton.search.index import all_cells
from pcreg.kernels.triton.search.visit import (
    COLUMNS,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_ORDERING,
    FIRST_TILE,
    FIRST_TRIPLET,
    FRAME,
    KERNEL_SIZE,
    N_CLOUDS,
    N_OUT,
    position,
    row_of_program,
)

BUCKETS = tl.constexpr(128)  # of a program of `put_in_order`
TILES_AT_ONCE = tl.constexpr(1024)  # loaded together to find the fullest
TILE, CELLS_AT_ONCE = tl.constexpr(tiles.ROWS), tl.constexpr(tiles.CELLS)
EMPTY, FIRST_SHARED = tl.constexpr(tiles.EMPTY), tl.constexpr(tiles.FIRST_SHARED)
FOUND = tl.constexpr(4)  # columns of `found`, the fields of pcreg.kernels.triton.search.run.Found
LENGTH, SHARED, MAX_SHARED, N_CELLS = map(tl.constexpr, range(4))
NO_ROW = tl.constexpr(2**31 - 1)  # larger than any row


@triton.jit
def _all_buckets(table, n_searches):
    """Number of buckets of all searches, int64."""
    row = table + (n_searches - 1) * COLUMNS
    kernel_size = tl.load(row + KERNEL_SIZE)
    return tl.load(row + FIRST_BUCKET) + kernel_size * kernel_size * kernel_size * tl.load(row + N_OUT)


@triton.jit(do_not_specialize=["n_searches"])
def size_tiles(
    table,
    n_searches,
    counts,  # (1 + all buckets + all tiles,): 0, sizes of buckets; out: numbers of shared buckets of tiles
    n_of_size,  # (all tiles, 2) int32, out: of these, buckets of two and of three points
):
    row, tile = row_of_program(table, n_searches, FIRST_TILE)
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    i = tile * TILE + tl.arange(0, TILE)
    n_shared = counts + 1 + _all_buckets(table, n_searches)
    counts += 1 + tl.load(row + FIRST_BUCKET) + i
    shared = tl.zeros((TILE,), tl.int32)
    twos, threes = shared, shared
    for k in range(kernel_size * kernel_size * kernel_size):
        count = tl.load(counts + k * n_out, mask=i < n_out, other=0)
        shared += (count > 1).to(tl.int32)
        twos += (count == 2).to(tl.int32)
        threes += (count == 3).to(tl.int32)
    n_of_size += 2 * tl.program_id(0)
    tl.store(n_of_size, tl.sum(twos))
    tl.store(n_of_size + 1, tl.sum(threes))
    tl.store(n_shared + tl.program_id(0), tl.sum(shared))


@triton.jit(do_not_specialize=["n_searches"])
def segment(
    table,
    n_searches,
    buckets,  # (1 + all buckets + all tiles,), the scan of the counts of `size_tiles`
    tile_offsets,  # (1 + all tiles,), out: the end of each search
    k_offsets,  # of all searches, out
    found,  # (searches, FOUND) int64, out
    CELLS: tl.constexpr,  # a power of two, no less than K
):
    """Write the segments of every search and the numbers that the host needs."""
    search = tl.program_id(0)
    row = table + search * COLUMNS
    kernel_size, n_out = tl.load(row + KERNEL_SIZE), tl.load(row + N_OUT)
    K = kernel_size * kernel_size * kernel_size
    k = tl.arange(0, CELLS)
    begins = buckets + tl.load(row + FIRST_BUCKET) + k * n_out
    begin, end = tl.load(begins, mask=k < K, other=0), tl.load(begins + n_out, mask=k < K, other=0)
    ends = tl.cumsum((end - begin).to(tl.int64), 0)
    k_offsets += tl.load(row + FIRST_OFFSET)
    tl.store(k_offsets, tl.full((), 0, tl.int64))
    tl.store(k_offsets + 1 + k, ends, mask=k < K)
    found += search * FOUND
    tl.store(found + LENGTH, tl.max(ends))
    before, tile = buckets + _all_buckets(table, n_searches), tl.load(row + FIRST_TILE)
    end = tile + tl.cdiv(n_out, TILE)
    shared = tl.load(before + end) - tl.load(before)
    tl.store(tile_offsets + end, shared)
    tl.store(found + SHARED, shared.to(tl.int64))
    most = tl.zeros((TILES_AT_ONCE,), tl.int32)
    for first in range(tile, end, TILES_AT_ONCE):
        at = first + tl.arange(0, TILES_AT_ONCE)
        upto = tl.load(before + at + 1, mask=at < end, other=0)
        most = tl.maximum(most, upto - tl.load(before + at, mask=at < end, other=0))
    tl.store(found + MAX_SHARED, tl.max(most, 0).to(tl.int64))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    tl.store(found + N_CELLS, all_cells(tl.load(row + N_CLOUDS), frame))


@triton.jit(do_not_specialize=["n_searches"])
def share_tiles(
    table,
    n_searches,
    buckets,  # (1 + all buckets + all tiles,), the scan: ends of buckets, then of shared buckets of tiles
    k_offsets,
    tile_offsets,  # (1 + all tiles,), out, but for the end of each search
    n_of_size,  # (all tiles, 2)
    source,  # (all buckets,), out where a bucket is shared
    shared_first,  # of all searches, out, like the next; counted from the first triplet of the search
    shared_size,
):
    """List the shared buckets of each tile."""
    row, tile = row_of_program(table, n_searches, FIRST_TILE)
    before = buckets + _all_buckets(table, n_searches)
    n_triplets, before = tl.load(before), before + tl.program_id(0)
    twos, end = tl.load(before) - n_triplets, tl.load(before + 1) - n_triplets
    tl.store(tile_offsets + tl.program_id(0), twos)
    if twos == end:
        return
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    i = tile * TILE + tl.arange(0, TILE)
    exists = i < n_out
    first_bucket = tl.load(row + FIRST_BUCKET) + i
    source += first_bucket
    k_offsets += tl.load(row + FIRST_OFFSET)
    first_triplet = tl.load(row + FIRST_TRIPLET)
    K = kernel_size * kernel_size * kernel_size
    to_source = FIRST_SHARED + twos
    threes = twos + tl.load(n_of_size + 2 * tl.program_id(0))
    more = threes + tl.load(n_of_size + 2 * tl.program_id(0) + 1)
    for k_low in range(0, K, CELLS_AT_ONCE):
        k_high = tl.minimum(k_low + CELLS_AT_ONCE, K)
        n_twos = tl.zeros((TILE,), tl.int32)
        n_threes, n_more = n_twos, n_twos
        for k in range(k_low, k_high):
            _, size = _bucket(buckets, first_bucket + k * n_out, exists)
            n_twos += (size == 2).to(tl.int32)
            n_threes += (size == 3).to(tl.int32)
            n_more += (size > 3).to(tl.int32)
        two, three, one_more = twos + _before(n_twos), threes + _before(n_threes), more + _before(n_more)
        for k in range(k_low, k_high):
            begin, size = _bucket(buckets, first_bucket + k * n_out, exists)
            shared = size > 1
            at = tl.where(size == 2, two, tl.where(size == 3, three, one_more))
            first = position(begin, first_triplet + tl.load(k_offsets + k)) - first_triplet
            tl.store(source + k * n_out, to_source - at, mask=shared)
            tl.store(shared_first + at, first, mask=shared)
            tl.store(shared_size + at, size, mask=shared)
            two += (size == 2).to(tl.int32)
            three += (size == 3).to(tl.int32)
            one_more += (size > 3).to(tl.int32)
        twos, threes, more = twos + tl.sum(n_twos), threes + tl.sum(n_threes), more + tl.sum(n_more)


@triton.jit
def _bucket(buckets, bucket, exists):
    """The first place of a bucket in the scan, and its size."""
    begin = tl.load(buckets + bucket - 1, mask=exists & (bucket > 0), other=0)
    return begin, tl.load(buckets + bucket, mask=exists, other=0) - begin


@triton.jit
def _before(counts):
    """Sums of the counts before each."""
    return tl.cumsum(counts, 0) - counts


@triton.jit(do_not_specialize=["n_searches"])
def put_in_order(
    table,
    n_searches,
    buckets,  # (1 + all buckets,), the end of each
    k_offsets,
    unordered,  # (all triplets,) int32: j, in any order within a bucket
    i_out,  # (all triplets,) int32, out, like the next
    j_out,
    source,  # (all buckets,) of the Tiles, out where a bucket is not shared
):
    """Write i, and j in ascending order within each bucket."""
    row, program = row_of_program(table, n_searches, FIRST_ORDERING)
    n_out = tl.load(row + N_OUT)
    blocks = tl.cdiv(n_out, BUCKETS)
    k, i = program // blocks, program % blocks * BUCKETS + tl.arange(0, BUCKETS)
    exists = i < n_out
    bucket = tl.load(row + FIRST_BUCKET) + k * n_out + i
    first = tl.load(row + FIRST_TRIPLET) + tl.load(k_offsets + tl.load(row + FIRST_OFFSET) + k)
    begin, size = _bucket(buckets, bucket, exists)
    begin = position(begin, first)
    # Nearly all buckets have up to four points, which a sorting network puts in order.
    a = tl.load(unordered + begin, mask=size > 0, other=NO_ROW)
    b = tl.load(unordered + begin + 1, mask=size > 1, other=NO_ROW)
    c = tl.load(unordered + begin + 2, mask=size > 2, other=NO_ROW)
    d = tl.load(unordered + begin + 3, mask=size > 3, other=NO_ROW)
    tl.store(source + bucket, tl.where(size == 1, a, EMPTY), mask=exists & (size < 2))
    a, b = tl.minimum(a, b), tl.maximum(a, b)
    c, d = tl.minimum(c, d), tl.maximum(c, d)
    a, c = tl.minimum(a, c), tl.maximum(a, c)
    b, d = tl.minimum(b, d), tl.maximum(b, d)
    b, c = tl.minimum(b, c), tl.maximum(b, c)
    few = size <= 4
    _write(i_out, j_out, begin, i, a, few & (size > 0))
    _write(i_out, j_out, begin + 1, i, b, few & (size > 1))
    _write(i_out, j_out, begin + 2, i, c, few & (size > 2))
    _write(i_out, j_out, begin + 3, i, d, few & (size > 3))
    size = tl.where(few, 0, size)
    most = tl.max(size)
    for n in range(most):
        j = tl.load(unordered + begin + n, mask=n < size, other=0)
        rank = tl.zeros_like(size)
        for other in range(most):
            smaller = tl.load(unordered + begin + other, mask=other < size, other=0) < j
            rank += (smaller & (other < size)).to(tl.int32)
        _write(i_out, j_out, begin + rank, i, j, n < size)


@triton.jit
def _write(i_out, j_out, at, i, j, mask):
    tl.store(i_out + at, i.to(tl.int32), mask=mask)
    tl.store(j_out + at, j, mask=mask)
