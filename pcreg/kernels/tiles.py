"""Triplets arranged for tiles of output rows, which programs of a GPU convolve.

A bucket, the triplets that share (k, i), usually holds one point; those that hold more are listed
separately, tile by tile, so that a program can sum them first and then read one row per bucket.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

ROWS = 128  # output rows of a tile
EMPTY = -1
FIRST_SHARED = -2  # source of shared bucket m of a tile is FIRST_SHARED - m
SIZES = 5  # classes of buckets by size; the last has SIZES - 1 points and more
CELLS = 32  # kernel cells that are listed together


@dataclass(frozen=True)
class Tiles:
    """Rows that each tile reads, and Q shared buckets, sorted by tile, size, group of CELLS cells, i and k.

    Sizes ascend within a tile, because a program sums several buckets at once and waits for the largest.
    Triplets that were searched together share one list of shared buckets.
    """

    source: Tensor  # (K, N_out) int32: the row j of a bucket of one point, EMPTY, or FIRST_SHARED - m
    shared_first: Tensor  # (Q,) int64: shared bucket q is triplets shared_first[q] ...
    shared_size: Tensor  # (Q,) int32: ... and so many in all
    tile_offsets: Tensor  # (tiles + 1,) int32, the shared buckets of each tile
    max_shared: int  # in any one tile

    def tensors(self) -> list[Tensor]:
        """The arrays that a kernel reads."""
        return [self.source, self.shared_first, self.shared_size, self.tile_offsets]

    @staticmethod
    def build(i: Tensor, j: Tensor, k_offsets: Tensor, n_out: int) -> "Tiles":
        """Tiles of triplets sorted by k, i, j. Waits for the device."""
        K, n_tiles = len(k_offsets) - 1, -(-n_out // ROWS)
        k = torch.repeat_interleave(torch.arange(K, device=i.device), torch.diff(k_offsets))
        bucket, size = torch.unique_consecutive(k * n_out + i, return_counts=True)
        first = size.cumsum(0) - size
        source = torch.full((K * n_out,), EMPTY, dtype=torch.int32, device=i.device)
        source[bucket[size == 1]] = j[first[size == 1]]

        bucket, first, size = (each[size > 1] for each in (bucket, first, size))
        k, i = bucket // n_out, bucket % n_out
        key = (i // ROWS * SIZES + size.clamp(max=SIZES - 1)) * -(-K // CELLS) + k // CELLS
        order = torch.sort(key * ROWS + i % ROWS, stable=True).indices
        bucket, first, size, tile = (each[order] for each in (bucket, first, size, i // ROWS))
        per_tile = torch.bincount(tile, minlength=n_tiles)
        tile_offsets = torch.cat([per_tile.new_zeros(1), per_tile.cumsum(0)])
        within_tile = torch.arange(len(tile), device=i.device) - tile_offsets[tile]
        source[bucket] = (FIRST_SHARED - within_tile).int()
        max_shared = int(per_tile.max()) if n_tiles else 0
        return Tiles(source.view(K, n_out), first, size.int(), tile_offsets.int(), max_shared)
