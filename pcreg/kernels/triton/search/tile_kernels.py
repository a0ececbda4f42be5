"""Segments and tiles of the triplets that a search has counted. See kernels/tiles.py."""

import triton
import triton.language as tl

from pcreg.kernels.triton.search.index import all_cells
from pcreg.kernels.triton.search.table import (
    COLUMNS,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_SOURCE,
    FIRST_TILE,
    FIRST_TRIPLET,
    FOUND,
    FRAME,
    KERNEL_SIZE,
    LENGTH,
    MAX_SHARED,
    N_CELLS,
    N_CLOUDS,
    N_OUT,
    SHARED,
    all_buckets,
    position,
    search_of_program,
)


@triton.jit(do_not_specialize=["n_searches"])
def size_tiles(
    table,
    n_searches,
    counts,  # (1 + all buckets + all tiles,): behind each bucket its size; then, out: each tile's shared ones
    n_of_size,  # (all tiles, 2) int32, out: how many of them have two and three points
    SEARCHES: tl.constexpr,
    TILE: tl.constexpr,
):
    search, tile = search_of_program(table, n_searches, FIRST_TILE, SEARCHES)
    row = table + search * COLUMNS
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    i = tile * TILE + tl.arange(0, TILE)
    n_shared = counts + 1 + all_buckets(table, n_searches)
    counts += 1 + tl.load(row + FIRST_BUCKET) + i
    shared, twos, threes = (
        tl.zeros((TILE,), tl.int32),
        tl.zeros((TILE,), tl.int32),
        tl.zeros((TILE,), tl.int32),
    )
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
    buckets,  # (1 + all buckets + all tiles,), the scan of what `size_tiles` leaves
    tile_offsets,  # (1 + all tiles,), out: where those of each search end
    k_offsets,  # of all searches, out
    found,  # (searches, FOUND) int64, out
    CELLS: tl.constexpr,  # a power of two, no less than K
    TILE: tl.constexpr,
    TILES: tl.constexpr,  # looked at together
):
    """The bounds of every search's segments, and what the host has to know."""
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
    before, tile = buckets + all_buckets(table, n_searches), tl.load(row + FIRST_TILE)
    end = tile + tl.cdiv(n_out, TILE)
    shared = tl.load(before + end) - tl.load(before)
    tl.store(tile_offsets + end, shared)
    tl.store(found + SHARED, shared.to(tl.int64))
    most = tl.zeros((TILES,), tl.int32)
    for first in range(tile, end, TILES):
        at = first + tl.arange(0, TILES)
        upto = tl.load(before + at + 1, mask=at < end, other=0)
        most = tl.maximum(most, upto - tl.load(before + at, mask=at < end, other=0))
    tl.store(found + MAX_SHARED, tl.max(most, 0).to(tl.int64))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    tl.store(found + N_CELLS, all_cells(tl.load(row + N_CLOUDS), frame))


@triton.jit(do_not_specialize=["n_searches"])
def share_tiles(
    table,
    n_searches,
    buckets,  # (1 + all buckets + all tiles,), where each ends; then the scan of shared ones goes on
    k_offsets,
    tile_offsets,  # (1 + all tiles,), out, but where those of a search end
    n_of_size,  # (all tiles, 2)
    source,  # of all searches, out where a bucket is shared
    shared_first,  # of all searches, out, like the next; counted from the search's first triplet
    shared_size,
    SEARCHES: tl.constexpr,
    TILE: tl.constexpr,
    SIZES: tl.constexpr,
    FIRST_SHARED: tl.constexpr,
    CELLS: tl.constexpr,
):
    """List the shared buckets of each tile."""
    tl.static_assert(SIZES == 5)  # of two, three, and more points
    search, tile = search_of_program(table, n_searches, FIRST_TILE, SEARCHES)
    row = table + search * COLUMNS
    before = buckets + all_buckets(table, n_searches)
    n_triplets, before = tl.load(before), before + tl.program_id(0)
    twos, end = tl.load(before) - n_triplets, tl.load(before + 1) - n_triplets
    tl.store(tile_offsets + tl.program_id(0), twos)
    first_source = tl.load(row + FIRST_SOURCE)
    if (first_source < 0) | (twos == end):
        return
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    i = tile * TILE + tl.arange(0, TILE)
    exists = i < n_out
    first_bucket = tl.load(row + FIRST_BUCKET) + i
    source += first_source + i
    k_offsets += tl.load(row + FIRST_OFFSET)
    first_triplet = tl.load(row + FIRST_TRIPLET)
    K = kernel_size * kernel_size * kernel_size
    to_source = FIRST_SHARED + twos
    threes = twos + tl.load(n_of_size + 2 * tl.program_id(0))
    more = threes + tl.load(n_of_size + 2 * tl.program_id(0) + 1)
    for k_low in range(0, K, CELLS):
        k_high = tl.minimum(k_low + CELLS, K)
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
    """Where a bucket begins, as the scan says, and its size."""
    begin = tl.load(buckets + bucket - 1, mask=exists & (bucket > 0), other=0)
    return begin, tl.load(buckets + bucket, mask=exists, other=0) - begin


@triton.jit
def _before(counts):
    """The sum of the counts before each."""
    return tl.cumsum(counts, 0) - counts
