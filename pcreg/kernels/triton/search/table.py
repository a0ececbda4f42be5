"""One launch for several searches: a table tells each program what it searches and where it writes."""

from typing import NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor


class Row(NamedTuple):
    """A search as the kernels read it: pointers and numbers in int64, float64 bit by bit."""

    centres: int  # (N, 3)
    centre_normals: int  # (N, 3), this and the next zero if there are none
    point_normals: int  # (P, 3), row by row
    cloud: int  # (N,) int32, zero if there is only one
    n_out: int
    points: int  # (P, 3), this and the next three of a CellIndex or CellTable
    lookup: int  # (P,) int64 keys, or (cells + 1,) int32 starts
    order: int  # (P,)
    frame: int  # (7,)
    n_in: int
    n_clouds: int
    size: int  # float64
    radius: int  # float64
    kernel_size: int
    half_width: int
    stride: int
    mirrored: int
    symmetric: int  # each two points are looked at once
    first_bucket: int  # of all searches' buckets, this search's begin here; likewise:
    first_offset: int  # k_offsets
    first_tile: int
    first_program: int  # of the search's programs
    shares: int  # programs that share the rows of cells of a block of centres
    first_ordering: int
    places: int = 0  # of voxels: (K, N), where the points of each bucket begin
    first_triplet: int = 0  # known once they are counted
    first_source: int = -1  # of the sources of all Tiles; -1: not wanted, which is known then

    @property
    def n_buckets(self) -> int:
        return self.kernel_size**3 * self.n_out


COLUMNS = tl.constexpr(len(Row._fields))
(
    CENTRES,
    CENTRE_NORMALS,
    POINT_NORMALS,
    CLOUD,
    N_OUT,
    POINTS,
    LOOKUP,
    ORDER,
    FRAME,
    N_IN,
    N_CLOUDS,
    SIZE,
    RADIUS,
    KERNEL_SIZE,
    HALF_WIDTH,
    STRIDE,
    MIRRORED,
    SYMMETRIC,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_TILE,
    FIRST_PROGRAM,
    SHARES,
    FIRST_ORDERING,
    PLACES,
    FIRST_TRIPLET,
    FIRST_SOURCE,
) = map(tl.constexpr, range(len(Row._fields)))


class Found(NamedTuple):
    """What the host has to know of a search before it can be filled in."""

    length: int  # triplets
    shared: int  # buckets of several points, of this search and those before
    max_shared: int  # in a tile
    n_cells: int  # that the keys of the index number


FOUND = tl.constexpr(len(Found._fields))
LENGTH, SHARED, MAX_SHARED, N_CELLS = map(tl.constexpr, range(len(Found._fields)))


def on_device(rows: list[Row], device: torch.device) -> Tensor:
    """(searches, COLUMNS) int64."""
    return torch.from_numpy(np.array(rows, np.int64)).to(device, non_blocking=True)


@triton.jit
def search_of_program(table, n_searches, FIRST: tl.constexpr, SEARCHES: tl.constexpr):
    """Which search this program works for, and its number among that search's programs.

    FIRST is the column that says which program is each search's first.
    """
    search = tl.arange(0, SEARCHES)
    first = tl.load(table + search * COLUMNS + FIRST, mask=search < n_searches, other=1 << 62)
    search = tl.sum((first <= tl.program_id(0)).to(tl.int32)) - 1
    return search, tl.program_id(0) - tl.load(table + search * COLUMNS + FIRST)


@triton.jit
def all_buckets(table, n_searches):
    """How many buckets all searches have, int64."""
    row = table + (n_searches - 1) * COLUMNS
    kernel_size = tl.load(row + KERNEL_SIZE)
    return tl.load(row + FIRST_BUCKET) + kernel_size * kernel_size * kernel_size * tl.load(row + N_OUT)


@triton.jit
def position(scanned, first):
    """The place of a triplet, int64, `first` being that of its segment and `scanned` its low 32 bits."""
    return first + (scanned - first.to(tl.int32)).to(tl.int64)
