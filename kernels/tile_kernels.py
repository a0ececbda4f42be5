"""Tiles of the triplets that a search has counted, one program per tile. See kernels/tiles.py."""

import triton
import triton.language as tl

from kernels.search_table import (
    FINENESS,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_TILE,
    FIRST_TRIPLET,
    N_OUT,
    SOURCE,
    position,
    search_of_program,
)


@triton.jit(do_not_specialize=["n_searches", "n_all_tiles"])
def size_tiles(
    table,
    n_searches,
    counts,  # (1 + all buckets,), the size of each bucket behind it
    tile_sizes,  # (2, 1 + all tiles) int32, out: shared buckets and their triplets, behind each tile
    sizes,  # (searches, 5) int64, out: column 3, most shared buckets of a tile
    n_all_tiles,
    COLUMNS: tl.constexpr,
    SEARCHES: tl.constexpr,
    ROWS: tl.constexpr,
):
    search, tile = search_of_program(table, n_searches, FIRST_TILE, COLUMNS, SEARCHES)
    row = table + search * COLUMNS
    n_out, fineness = tl.load(row + N_OUT), tl.load(row + FINENESS)
    i = tile * ROWS + tl.arange(0, ROWS)
    counts += 1 + tl.load(row + FIRST_BUCKET) + i
    buckets, triplets = tl.zeros((ROWS,), tl.int32), tl.zeros((ROWS,), tl.int32)
    for k in range(fineness * fineness * fineness):
        size = tl.load(counts + k * n_out, mask=i < n_out, other=0)
        buckets += (size > 1).to(tl.int32)
        triplets += tl.where(size > 1, size, 0)
    n_shared = tl.sum(buckets)
    at = tile_sizes + 1 + tl.program_id(0)
    tl.store(at, n_shared)
    tl.store(at + n_all_tiles + 1, tl.sum(triplets))
    tl.atomic_max(sizes + search * 5 + 3, n_shared.to(tl.int64), sem="relaxed")


@triton.jit(do_not_specialize=["n_searches", "n_all_tiles"])
def fill_tiles(
    table,
    n_searches,
    buckets,  # (1 + all buckets,), where each ends
    k_offsets,
    j,  # (all triplets,)
    tile_offsets,  # (2, 1 + all tiles)
    shared_offsets,  # of all searches, out, like the next
    shared_j,
    n_all_tiles,
    COLUMNS: tl.constexpr,
    SEARCHES: tl.constexpr,
    ROWS: tl.constexpr,
    SIZES: tl.constexpr,
    EMPTY: tl.constexpr,
    FIRST_SHARED: tl.constexpr,
    CELLS: tl.constexpr,  # kernel cells at a time
):
    search, tile = search_of_program(table, n_searches, FIRST_TILE, COLUMNS, SEARCHES)
    row = table + search * COLUMNS
    if tl.load(row + SOURCE) == 0:
        return
    source = tl.load(row + SOURCE).to(tl.pointer_type(tl.int32))
    n_out, fineness = tl.load(row + N_OUT), tl.load(row + FINENESS)
    K = fineness * fineness * fineness
    i = tile * ROWS + tl.arange(0, ROWS)[None, :]
    largest = 0
    for k_low in range(0, K, CELLS):
        k = k_low + tl.arange(0, CELLS)[:, None]
        exists = (k < K) & (i < n_out)
        begin, size = _bucket(row, buckets, k_offsets, k, i, n_out, exists)
        alone = tl.load(j + begin, mask=size == 1, other=EMPTY)
        tl.store(source + k * n_out + i, alone, mask=exists & (size < 2))
        largest = tl.maximum(largest, tl.max(size))
    at_bucket = tl.load(tile_offsets + tl.program_id(0))
    at_triplet = tl.load(tile_offsets + n_all_tiles + 1 + tl.program_id(0))
    first_bucket = at_bucket
    for bin in range(2, tl.minimum(largest, SIZES - 1) + 1):
        for k_low in range(0, K, CELLS):
            k = k_low + tl.arange(0, CELLS)[:, None]
            exists = (k < K) & (i < n_out)
            begin, size = _bucket(row, buckets, k_offsets, k, i, n_out, exists)
            chosen = tl.minimum(size, SIZES - 1) == bin
            ones = chosen.to(tl.int32)
            slot = at_bucket + _before(ones)
            tl.store(source + k * n_out + i, FIRST_SHARED - (slot - first_bucket), mask=chosen)
            size = tl.where(chosen, size, 0)
            first = at_triplet + _before(size)
            tl.store(shared_offsets + slot, first, mask=chosen)
            for n in range(tl.max(size)):
                member = tl.load(j + begin + n, mask=n < size, other=0)
                tl.store(shared_j + first + n, member, mask=n < size)
            at_bucket += tl.sum(ones)
            at_triplet += tl.sum(size)
    tl.store(shared_offsets + at_bucket, at_triplet)  # where the last one ends


@triton.jit
def _bucket(row, buckets, k_offsets, k, i, n_out, mask):
    """Where the triplets of bucket (k, i) begin, int64, and how many they are; 0 where the mask is false."""
    bucket = tl.load(row + FIRST_BUCKET) + k * n_out + i
    first = tl.load(row + FIRST_TRIPLET) + tl.load(
        k_offsets + tl.load(row + FIRST_OFFSET) + k, mask=mask, other=0
    )
    begin = tl.load(buckets + bucket - 1, mask=mask & (bucket > 0), other=0)
    end = tl.load(buckets + bucket, mask=mask, other=0)
    return position(begin, first), tl.where(mask, end - begin, 0)


@triton.jit
def _before(counts):
    """The sum of the counts (K, I) before each, in the order of k, then i."""
    in_row = tl.sum(counts, 1)
    return (tl.cumsum(in_row, 0) - in_row)[:, None] + tl.cumsum(counts, 1) - counts
