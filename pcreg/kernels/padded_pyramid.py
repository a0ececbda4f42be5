"""A pyramid with spare room, into which batches of different sizes are copied one after another.

A CUDA graph needs arrays that stay in place and keep their lengths. The rows that pad a batch have no
neighbours, are neighbours of no point, and belong to no group.
"""

import torch
from torch import Tensor

from pcreg.kernels.point_batch import PaddedRowGroups, PointBatch
from pcreg.kernels.pyramid import Pyramid, ends_of_triplets, same_and_down
from pcreg.kernels.pyramid_config import KERNEL_SIZE
from pcreg.kernels.tiles import EMPTY, ROWS, Tiles
from pcreg.kernels.triplets import Symmetry, Triplets

# Room: a multiple of the largest sizes so far, plus a constant for small ones
SPARE, LEAST_SPARE = 1.1, 64


class PaddedPyramid:
    """Room for pyramids; `pyramid` holds the last one loaded, without the coordinates of its points."""

    def __init__(self, like: Pyramid, before: "PaddedPyramid | None" = None):
        """Make room for pyramids as large as `like`, and for all that fitted into `before`."""
        sizes, n_levels, device = _sizes(like), len(like.levels), like.stem.device
        self._room = [int(SPARE * size) + LEAST_SPARE for size in sizes]
        if before:
            self._room = list(map(max, self._room, before._room))
        n, rest = self._room[:n_levels], self._room[n_levels:]
        rooms = zip(ends_of_triplets(n_levels), rest[::3], rest[1::3], rest[2::3], strict=True)
        triplets = [
            empty_triplets(n[out], n[into], device, *room, each.symmetric)
            for each, ((out, into), *room) in zip(like.triplets, rooms, strict=True)
        ]
        bounds = [torch.zeros_like(groups.bounds(device)) for groups in like.row_groups]
        self.pyramid = Pyramid(
            [PointBatch(torch.empty(rows, 0, device=device), torch.empty(0, device=device)) for rows in n],
            like.stem.new_empty(len(like.stem), n[0]),
            *same_and_down(triplets, n_levels),
            like.cloud_groups,
            [PaddedRowGroups(rows, each) for rows, each in zip(n, bounds, strict=True)],
        )

    def has_room_for(self, pyramid: Pyramid) -> bool:
        """True if the pyramid fits into the room."""
        return all(room >= size for room, size in zip(self._room, _sizes(pyramid), strict=True))

    def load(self, pyramid: Pyramid) -> None:
        """Copy a pyramid that fits, without waiting for the GPU."""
        own = self.pyramid
        _fill(own.stem, pyramid.stem, 0)
        copies = []
        for given, groups in zip(pyramid.row_groups, own.row_groups, strict=True):
            copies.append((groups.device_bounds, given.bounds(groups.device_bounds.device)))
        for given, here in zip(pyramid.triplets, own.triplets, strict=True):
            copies += [(here.i, given.i), (here.j, given.j), (here.k_offsets, given.k_offsets)]
            brought, tiles = given.tiles, here.tiles
            _fill(tiles.source, brought.source, EMPTY)
            # Padding tiles end at offset 0, at or before their beginning: they have no shared buckets
            _fill(tiles.tile_offsets, brought.tile_offsets, 0)
            copies += [(tiles.shared_first, brought.shared_first), (tiles.shared_size, brought.shared_size)]
        copies = [(target[: len(given)], given) for target, given in copies if len(given)]
        for dtype in (torch.int32, torch.int64):  # a launch or two each
            targets, sources = zip(*(each for each in copies if each[0].dtype == dtype), strict=True)
            torch._foreach_copy_(targets, sources)


def _fill(target: Tensor, source: Tensor, behind: int) -> None:
    """Copy source (..., n) to the beginning of target (..., m), and fill the rest with `behind`."""
    n = source.shape[-1]
    target[..., :n] = source
    target[..., n:] = behind


def _sizes(pyramid: Pyramid) -> list[int]:
    """Sizes that differ between pyramids: points of each level, then three numbers for each of its Triplets.

    The three are the number of triplets, that of shared buckets, and the most shared buckets of a tile.
    """
    sizes = [len(level) for level in pyramid.levels]
    for each in pyramid.triplets:
        sizes += len(each), len(each.tiles.shared_size), each.tiles.max_shared
    return sizes


def empty_triplets(
    n_out: int,
    n_in: int,
    device: torch.device | str,
    size: int = 0,
    n_shared: int = 0,
    max_shared: int = 1,
    symmetric: Symmetry = Symmetry.NONE,
) -> Triplets:
    """Allocate `size` triplets, and Tiles with these numbers of shared buckets."""
    i, j = torch.empty(2, size, dtype=torch.int32, device=device)
    K = KERNEL_SIZE**3
    sizes, offsets = i.new_empty(n_shared), i.new_zeros(-(-n_out // ROWS) + 1)
    tiles = Tiles(i.new_empty(K, n_out), sizes.long(), sizes, offsets, max_shared)
    return Triplets(i, j, i.new_zeros(K + 1, dtype=torch.int64), n_out, n_in, symmetric, tiles)
