"""Triplets arranged by tiles of output rows, for convolution on a GPU.

A bucket, the triplets that share (k, i), usually holds one point. Shared buckets, with several points, are
listed tile by tile, so that a program can sum their points first and then read one row per bucket.
"""

from dataclasses import dataclass

from torch import Tensor

ROWS = 128  # output rows of a tile
EMPTY = -1
FIRST_SHARED = -2  # source of shared bucket m of a tile is FIRST_SHARED - m
CELLS = 32  # kernel cells that are listed together


@dataclass(frozen=True)
class Tiles:
    """Rows that each tile reads, and Q shared buckets sorted by tile, size, group of CELLS cells, i and k.

    Sizes (2, 3, or more) ascend within a tile, because a program sums several buckets at once and waits for
    the largest. Triplets that were searched together share one list of shared buckets.
    """

    source: Tensor  # (K, N_out) int32: the row j of a bucket of one point, EMPTY, or FIRST_SHARED - m
    shared_first: Tensor  # (Q,) int64: first triplet of each shared bucket
    shared_size: Tensor  # (Q,) int32: number of triplets of each shared bucket
    tile_offsets: Tensor  # (tiles + 1,) int32, the shared buckets of each tile
    max_shared: int  # largest number of shared buckets in a tile

    def tensors(self) -> list[Tensor]:
        """The arrays that a kernel reads."""
        return [self.source, self.shared_first, self.shared_size, self.tile_offsets]
