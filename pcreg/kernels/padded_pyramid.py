"""A pyramid with room to spare, into which batches of different sizes are copied one after another.

Its arrays stay where they are and as long as they are: that is what a CUDA graph needs. Rows behind those of
the batch see nothing, are seen by none, and belong to no group.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch

from pcreg.kernels.dataflow import some_dtype_takes_tiles
from pcreg.kernels.padded_copy import PaddedCopy, copy_padded
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.row_groups import PaddedRowGroups
from pcreg.kernels.tiles import EMPTY, ROWS, Tiles
from pcreg.kernels.triplets import Triplets

# Room, as a multiple of what the largest pyramid so far needs, and more where that is little
SPARE, LEAST_SPARE = 1.1, 64


class _Sizes(NamedTuple):
    """What changes from pyramid to pyramid; those of `_all_triplets` in their order."""

    points: tuple[int, ...]  # of each level
    triplets: tuple[int, ...]
    shared: tuple[int, ...] = ()  # buckets of several points, in the list of each one's Tiles; 0 without
    max_shared: tuple[int, ...] = ()  # in one tile


class PaddedPyramid:
    """`pyramid` holds what was loaded last. Of points it knows the number alone: no layer asks for more."""

    def __init__(self, like: Pyramid, before: "PaddedPyramid | None" = None):
        """With room for pyramids as large as this one, and for those for which there was room before."""
        every, levels, device = _all_triplets(like), len(like.levels), like.stem.device
        known = before._room if before else _Sizes((), ())
        n = _room(map(len, like.levels), known.points)
        T = _room(map(len, every), known.triplets)
        ends = [(level, level) for level in range(levels)]
        ends += [(level + 1, level) for level in range(levels - 1)]
        ends += [(level, level + 1) for level in range(levels - 1)]
        repeats = torch.are_deterministic_algorithms_enabled()
        with torch.enable_grad():  # as in training
            self._tiled = [
                repeats or some_dtype_takes_tiles(triplets.n_cells, n[out], size)
                for triplets, (out, _), size in zip(every, ends, T, strict=True)
            ]
        shared, max_shared = _shared(every, self._tiled)
        self._room = _Sizes(n, T, _room(shared, known.shared), _room(max_shared, known.max_shared))
        found = [
            _empty(triplets, n[out], n[into], size, (Q, most) if tiled else None)
            for triplets, (out, into), tiled, size, Q, most in zip(
                every, ends, self._tiled, *self._room[1:], strict=True
            )
        ]
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
        every = _all_triplets(pyramid)
        sizes = _Sizes(tuple(map(len, pyramid.levels)), tuple(map(len, every)), *_shared(every, self._tiled))
        both = zip(self._room, sizes, strict=True)
        return all(room >= size for own, given in both for room, size in zip(own, given, strict=True))

    def load(self, pyramid: Pyramid) -> None:
        """Copy a pyramid for which there is room, without waiting for the GPU."""
        copies, own = [PaddedCopy(pyramid.stem, self.pyramid.stem, 0)], self.pyramid
        for given, groups in zip(pyramid.row_groups, own.row_groups, strict=True):
            bounds = groups.device_bounds
            copies.append(PaddedCopy(given.bounds(bounds.device), bounds, None))
        every = zip(_all_triplets(pyramid), _all_triplets(own), self._tiled, strict=True)
        for given, triplets, tiled in every:
            copies += _copies(given, triplets, tiled)
        copy_padded([copy for copy in copies if copy.source.numel()])


def _all_triplets(pyramid: Pyramid) -> list[Triplets]:
    return [*pyramid.same, *pyramid.down, *(triplets.transposed for triplets in pyramid.down)]


def _room(sizes: Iterable[int], before: tuple[int, ...]) -> tuple[int, ...]:
    """With some to spare, and no less than before."""
    room = [int(SPARE * size) + LEAST_SPARE for size in sizes]
    return tuple(map(max, room, before or room))


def _shared(every: list[Triplets], tiled: list[bool]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The fields `shared` and `max_shared` of _Sizes."""
    tiles = [triplets.tiles if has_tiles else None for triplets, has_tiles in zip(every, tiled, strict=True)]
    shared = tuple(len(each.shared_size) if each else 0 for each in tiles)
    return shared, tuple(each.max_shared if each else 0 for each in tiles)


def _empty(like: Triplets, n_out: int, n_in: int, size: int, shared: tuple[int, int] | None) -> Triplets:
    """So many triplets, and for Tiles so many shared buckets, in all and in one tile."""
    i, j = like.i.new_empty(2, size)
    triplets = Triplets(i, j, torch.zeros_like(like.k_offsets), n_out, n_in, like.symmetric)
    if shared:
        source, sizes = i.new_empty(triplets.n_cells, n_out), i.new_empty(shared[0])
        offsets = i.new_zeros(-(-n_out // ROWS) + 1)
        triplets.take_tiles(Tiles(source, sizes.long(), sizes, offsets, shared[1]))
    return triplets


def _copies(given: Triplets, own: Triplets, tiled: bool) -> list[PaddedCopy]:
    """What brings triplets into those that have room."""
    copies = [
        PaddedCopy(given.i, own.i, None),
        PaddedCopy(given.j, own.j, None),
        PaddedCopy(given.k_offsets, own.k_offsets, None),
    ]
    if not tiled:
        return copies
    there, here = given.tiles, own.tiles
    return [
        *copies,
        PaddedCopy(there.source, here.source, EMPTY),
        PaddedCopy(there.shared_first, here.shared_first, None),
        PaddedCopy(there.shared_size, here.shared_size, None),
        # Behind the last tile each begins no earlier than it ends: there is nothing in it.
        PaddedCopy(there.tile_offsets, here.tile_offsets, 0),
    ]
