"""A pyramid with room to spare, into which batches of different sizes are copied one after another.

A CUDA graph needs arrays that stay in place and keep their lengths. Rows behind those of the batch see
nothing, are seen by none, and belong to no group.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from pcreg.kernels.point_batch import PaddedRowGroups, PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.tiles import EMPTY, ROWS, Tiles
from pcreg.kernels.triplets import Triplets

# Room, as a multiple of the needs of the largest pyramid so far, and more where these are little
SPARE, LEAST_SPARE = 1.1, 64


class _Sizes(NamedTuple):
    """Sizes that differ between pyramids; those of triplets in the order of `_all_triplets`."""

    points: tuple[int, ...]  # of each level
    triplets: tuple[int, ...]
    shared: tuple[int, ...]  # buckets of several points in the list of the Tiles
    max_shared: tuple[int, ...]  # in one tile

    @staticmethod
    def of(pyramid: Pyramid) -> "_Sizes":
        every = _all_triplets(pyramid)
        shared = (len(each.tiles.shared_size) for each in every)
        max_shared = (each.tiles.max_shared for each in every)
        sizes = map(len, pyramid.levels), map(len, every), shared, max_shared
        return _Sizes(*map(tuple, sizes))


class PaddedPyramid:
    """Room for pyramids; `pyramid` holds the last one loaded, but for the coordinates of its points."""

    def __init__(self, like: Pyramid, before: "PaddedPyramid | None" = None):
        """Make room for pyramids as large as this one, and for those for which there was room before."""
        sizes, levels, device = _Sizes.of(like), len(like.levels), like.stem.device
        n, *rest = self._room = _Sizes(*map(_room, sizes, before._room if before else sizes))
        ends = [(n[level], n[level]) for level in range(levels)]
        ends += [(n[level + 1], n[level]) for level in range(levels - 1)]
        ends += [(n[level], n[level + 1]) for level in range(levels - 1)]
        found = [_empty(*each) for each in zip(_all_triplets(like), ends, *rest, strict=True)]
        same, down, up = found[:levels], found[levels : 2 * levels - 1], found[2 * levels - 1 :]
        for there, back in zip(down, up, strict=True):
            there.pair_with(back)
        bounds = [torch.zeros_like(groups.bounds(device)) for groups in like.row_groups]
        self.pyramid = Pyramid(
            [PointBatch(torch.empty(rows, 0, device=device), torch.empty(0, device=device)) for rows in n],
            like.stem.new_empty(len(like.stem), n[0]),
            same,
            down,
            like.cloud_groups,
            [PaddedRowGroups(rows, each) for rows, each in zip(n, bounds, strict=True)],
        )

    def has_room_for(self, pyramid: Pyramid) -> bool:
        """True if the pyramid fits into these rows."""
        both = zip(self._room, _Sizes.of(pyramid), strict=True)
        return all(room >= size for own, given in both for room, size in zip(own, given, strict=True))

    def load(self, pyramid: Pyramid) -> None:
        """Copy a pyramid for which there is room, without waiting for the GPU."""
        own = self.pyramid
        _fill(own.stem, pyramid.stem, 0)
        copies = []
        for given, groups in zip(pyramid.row_groups, own.row_groups, strict=True):
            copies.append((groups.device_bounds, given.bounds(groups.device_bounds.device)))
        for given, here in zip(_all_triplets(pyramid), _all_triplets(own), strict=True):
            copies += [(here.i, given.i), (here.j, given.j), (here.k_offsets, given.k_offsets)]
            brought, tiles = given.tiles, here.tiles
            _fill(tiles.source, brought.source, EMPTY)
            # Behind the last tile each begins no earlier than it ends: there is nothing in it.
            _fill(tiles.tile_offsets, brought.tile_offsets, 0)
            copies += [(tiles.shared_first, brought.shared_first), (tiles.shared_size, brought.shared_size)]
        copies = [(target[: len(given)], given) for target, given in copies if len(given)]
        for dtype in (torch.int32, torch.int64):  # a launch or two each
            targets, sources = zip(*(each for each in copies if each[0].dtype == dtype), strict=True)
            torch._foreach_copy_(targets, sources)


def _fill(target: Tensor, source: Tensor, behind: int) -> None:
    """Copy rows (..., n) into the beginning of rows (..., m), and write a number behind them."""
    n = source.shape[-1]
    target[..., :n] = source
    target[..., n:] = behind


def _all_triplets(pyramid: Pyramid) -> list[Triplets]:
    return [*pyramid.same, *pyramid.down, *(triplets.transposed for triplets in pyramid.down)]


def _room(sizes: Iterable[int], before: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes with some to spare, and no less than before."""
    return tuple(max(int(SPARE * size) + LEAST_SPARE, old) for size, old in zip(sizes, before, strict=True))


def _empty(like: Triplets, ends: tuple[int, int], size: int, shared: int, max_shared: int) -> Triplets:
    """Room for `size` triplets, and for Tiles with these numbers of shared buckets."""
    i, j = like.i.new_empty(2, size)
    triplets = Triplets(i, j, torch.zeros_like(like.k_offsets), *ends, like.symmetric)
    source, sizes = i.new_empty(triplets.n_cells, ends[0]), i.new_empty(shared)
    offsets = i.new_zeros(-(-ends[0] // ROWS) + 1)
    triplets.take_tiles(Tiles(source, sizes.long(), sizes, offsets, max_shared))
    return triplets
