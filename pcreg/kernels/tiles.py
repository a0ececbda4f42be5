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
    """Rows that each tile reads, with Q shared buckets by tile, size, group of CELLS kernel cells, i, k.

    By size, because a program sums several buckets at once and waits for the largest. The shared
    buckets of several triplets may stand in one list.
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
        """Tiles of triplets sorted by k, i, j. Waits for the device, which computes Q and max_shared."""
        K, T, n_tiles = len(k_offsets) - 1, len(i), -(-n_out // ROWS)
        k = torch.repeat_interleave(torch.arange(K, device=i.device), torch.diff(k_offsets), output_size=T)
        bucket = k * n_out + i  # int64, ascending
        starts, ends = torch.ones(2, T, dtype=torch.bool, device=i.device)
        torch.ne(bucket[1:], bucket[:-1], out=starts[1:])
        ends[:-1] = starts[1:]
        single = starts & ends

        tile = i // ROWS
        per_tile = torch.zeros(n_tiles, dtype=torch.int64, device=i.device)
        per_tile.scatter_add_(0, tile.long(), (starts & ~single).long())
        largest = torch.cat([per_tile, per_tile.new_zeros(1)]).amax()
        Q, max_shared = torch.stack([per_tile.sum(), largest]).tolist()

        first = _positions(starts & ~single, Q)
        size = _positions(ends & ~single, Q) + 1 - first
        key = (tile[first] * SIZES + size.clamp(max=SIZES - 1)) * -(-K // CELLS) + k[first] // CELLS
        order = torch.sort(key * ROWS + i[first] % ROWS, stable=True).indices
        first, size = first[order], size[order]
        tile_offsets = torch.cat([per_tile.new_zeros(1), per_tile.cumsum(0)])
        within_tile = torch.arange(Q, device=i.device) - tile_offsets[tile[first].long()]

        source = torch.full((K * n_out + 1,), EMPTY, dtype=torch.int32, device=i.device)
        # The last entry collects shared buckets, and is dropped.
        source.scatter_(0, torch.where(single, bucket, K * n_out), j)
        source.scatter_(0, bucket[first], (FIRST_SHARED - within_tile).int())
        return Tiles(source[:-1].view(K, n_out), first, size.int(), tile_offsets.int(), max_shared)


def _positions(mask: Tensor, count: int) -> Tensor:
    """Positions (count,) int64 at which mask (T,) holds, `count` times, without waiting for the device."""
    slot = torch.where(mask, mask.cumsum(0) - 1, count)
    positions = torch.empty(count + 1, dtype=torch.int64, device=mask.device)
    return positions.scatter_(0, slot, torch.arange(len(mask), device=mask.device))[:-1]
