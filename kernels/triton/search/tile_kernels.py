"""Tiles of the triplets that a search has counted, one program per tile. See kernels/tiles.py."""

import triton
import triton.language as tl

from pcreg.kernels.triton.search.table import (
    COLUMNS,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_SOURCE,
    FIRST_TILE,
    FIRST_TRIPLET,
    FOUND,
    KERNEL_SIZE,
    MAX_SHARED,
    N_OUT,
    position,
    search_of_program,
)


@triton.jit(do_not_specialize=["n_searches"])
def size_tiles(
    table,
    n_searches,
    counts,  # (1 + all buckets,), the size of each bucket behind it
    n_shared,  # (1 + all tiles,) int32, out: shared buckets, behind each tile
    found,  # (searches, FOUND) int64, out: MAX_SHARED
    SEARCHES: tl.constexpr,
    TILE: tl.constexpr,
):
    search, tile = search_of_program(table, n_searches, FIRST_TILE, SEARCHES)
    row = table + search * COLUMNS
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    i = tile * TILE + tl.arange(0, TILE)
    counts += 1 + tl.load(row + FIRST_BUCKET) + i
    shared = tl.zeros((TILE,), tl.int32)
    for k in range(kernel_size * kernel_size * kernel_size):
        shared += (tl.load(counts + k * n_out, mask=i < n_out, other=0) > 1).to(tl.int32)
    tl.store(n_shared + 1 + tl.program_id(0), tl.sum(shared))
    tl.atomic_max(found + search * FOUND + MAX_SHARED, tl.sum(shared).to(tl.int64), sem="relaxed")


@triton.jit(do_not_specialize=["n_searches"])
def fill_tiles(
    table,
    n_searches,
    buckets,  # (1 + all buckets,), where each ends
    k_offsets,
    j,  # (all triplets,)
    tile_offsets,  # (1 + all tiles,)
    source,  # of all searches, out
    shared_first,  # of all searches, out, like the next; counted from the search's first triplet
    shared_size,
    SEARCHES: tl.constexpr,
    TILE: tl.constexpr,
    SIZES: tl.constexpr,
    EMPTY: tl.constexpr,
    FIRST_SHARED: tl.constexpr,
    CELLS: tl.constexpr,
):
    search, tile = search_of_program(table, n_searches, FIRST_TILE, SEARCHES)
    row = table + search * COLUMNS
    if tl.load(row + FIRST_SOURCE) < 0:
        return
    source += tl.load(row + FIRST_SOURCE)
    n_out, kernel_size = tl.load(row + N_OUT), tl.load(row + KERNEL_SIZE)
    first_bucket, first_triplet = tl.load(row + FIRST_BUCKET), tl.load(row + FIRST_TRIPLET)
    k_offsets += tl.load(row + FIRST_OFFSET)
    K = kernel_size * kernel_size * kernel_size
    i = tile * TILE + tl.arange(0, TILE)[None, :]
    first_slot = tl.load(tile_offsets + tl.program_id(0))
    slot, largest = first_slot, 1
    # Size 1, what is not shared, comes first and tells how large the others are.
    for size in range(1, SIZES):
        if size <= largest:
            for k_low in range(0, K, CELLS):
                k = k_low + tl.arange(0, CELLS)[:, None]
                exists = (k < K) & (i < n_out)
                bucket = first_bucket + k * n_out + i
                begin = tl.load(buckets + bucket - 1, mask=exists & (bucket > 0), other=0)
                count = tl.where(exists, tl.load(buckets + bucket, mask=exists, other=0) - begin, 0)
                begin = position(begin, first_triplet + tl.load(k_offsets + k, mask=k < K, other=0))
                if size == 1:
                    alone = tl.load(j + begin, mask=count == 1, other=EMPTY)
                    tl.store(source + k * n_out + i, alone, mask=exists & (count < 2))
                    largest = tl.maximum(largest, tl.max(count))
                else:
                    chosen = tl.minimum(count, SIZES - 1) == size
                    ones = chosen.to(tl.int32)
                    of_row = tl.sum(ones, 0)  # summed along k, which a thread does by itself
                    at = slot + (tl.cumsum(of_row, 0) - of_row)[None, :] + tl.cumsum(ones, 0) - ones
                    tl.store(source + k * n_out + i, FIRST_SHARED - (at - first_slot), mask=chosen)
                    tl.store(shared_first + at, begin - first_triplet, mask=chosen)
                    tl.store(shared_size + at, count, mask=chosen)
                    slot += tl.sum(ones)
