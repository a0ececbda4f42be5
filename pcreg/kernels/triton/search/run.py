"""Searches that run together on a GPU: triplets are counted, then filled in, without a sort.

For each centre a program visits the rows of cells that can hold neighbours: a look into the table of cells,
or a binary search among the sorted ones, then a short scan. Where the centres are the points themselves it
visits half of them, since a triplet (i, j, k) tells which (j, i, k') there is.

    visit       how many points each bucket (k, i) holds
    scan        where each bucket begins: that groups by k, then i
    visit       the rows j of each bucket, as they are met
    order       j in ascending order within its bucket, and i beside it

The device is waited for once, after the scan, to learn how long the results are. A native search by itself
goes on meanwhile, into room for as many triplets as most clouds have. No list of candidates is kept:
beside the triplets there are two int32 per bucket at first, then one, and one per triplet.
Places are 64 bits wide; the scan is an int32 that may wrap around, as a segment has less than 2^31 triplets.
"""

from typing import NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import MAX_KEY
from pcreg.kernels.dataflow import some_dtype_takes_tiles
from pcreg.kernels.tiles import CELLS, EMPTY, FIRST_SHARED, SIZES, Tiles
from pcreg.kernels.tiles import ROWS as TILE
from pcreg.kernels.transfer import Fetched
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.bits import bits
from pcreg.kernels.triton.blocks import power_of_two
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search.cell_table import CellTable, NoRoomError
from pcreg.kernels.triton.search.index import check_numbered
from pcreg.kernels.triton.search.kernels import put_in_order, visit
from pcreg.kernels.triton.search.query import Search
from pcreg.kernels.triton.search.table import Found, Row, on_device
from pcreg.kernels.triton.search.tile_kernels import segment, share_tiles, size_tiles

BLOCK = 32  # centres of a program: one warp, as all of a program wait for the longest scan
BUCKETS = 128  # of a program that puts them in order
TILES_AT_ONCE = 1024  # of which a program finds the fullest
MIN_SEARCHES = 16  # rows of the table as kernels load it: one search takes the kernels of a pyramid
MIN_CELLS = 27  # kernel cells of a search, likewise
AHEAD = 32  # triplets per centre, of a surface half as many again as 27 cells find
MIN_BLOCKS = 2**13  # below it, the rows of cells of a block are shared among programs, to fill a GPU


class SearchRun:
    """Some searches of native points; ValueError unless all are of one kind."""

    def __init__(self, searches: list[Search]):
        if len({search.kind for search in searches}) > 1:
            raise ValueError(
                "searches run together if all are native or all of voxels, with normals or without, "
                "of one dtype, and by one kind of index"
            )
        self.searches, self.device = searches, searches[0].centres.device
        self.by_table = isinstance(searches[0].index, CellTable)
        self.rows, self.totals = _rows(searches)
        self.steps = max(
            row.n_in for row in self.rows
        ).bit_length()  # of a binary search in the longest index
        self.n_rows = power_of_two(max(len(searches), MIN_SEARCHES))  # of the table, as the kernels load it

    def triplets(self) -> list[Triplets]:
        """The triplets of each search, with their Tiles where a convolution may take them."""
        known = self._count()
        ahead = self._filled_ahead() if self.by_table else None
        found = self._found(known)
        self._place(found)
        i, j, tiles = self._fill(found, ahead)
        results = []
        for search, row, one in zip(self.searches, self.rows, found, strict=True):
            mine = slice(row.first_triplet, row.first_triplet + one.length)
            segments = self.k_offsets[row.first_offset : row.first_offset + search.n_cells + 1]
            triplets = Triplets(i[mine], j[mine], segments, row.n_out, row.n_in, search.symmetry)
            if row.first_source >= 0:
                triplets.take_tiles(self._tiles(row, one, *tiles))
            results.append(triplets)
        return results

    def counts(self) -> list[Tensor]:
        """Of each search how many points its buckets hold, (K, N_out) int32. Does not wait for the device."""
        counts = self._visited()
        firsts = [1 + row.first_bucket for row in self.rows]
        return [
            counts[first : first + row.n_buckets].view(row.kernel_size**3, row.n_out)
            for first, row in zip(firsts, self.rows, strict=True)
        ]

    def _visited(self) -> Tensor:
        """(1 + all buckets + all tiles,) int32: a zero, how many points each bucket holds, and zeros."""
        self.table = on_device(self.rows, self.device)
        counts = self._zeros(1 + self.totals.buckets + self.totals.tiles)  # one scan serves both
        nothing = self.table  # is not read
        self._visit(counts, nothing, counts, fill=False)
        return counts

    def _count(self) -> Fetched:
        """Begin to count: of each search what `Found` holds, and all k_offsets."""
        counts = self._visited()
        sizes = len(self.rows) * len(Found._fields)
        known = self._zeros(
            sizes + self.totals.offsets, dtype=torch.int64
        )  # where launches are collected, too
        self.k_offsets = known[sizes:]
        self.n_of_size = self._empty(self.totals.tiles, 2)
        arguments = counts, self.n_of_size
        self._launch(size_tiles, self.totals.tiles, arguments, SEARCHES=self.n_rows, TILE=TILE)
        self.buckets = torch.cumsum(counts, 0, dtype=torch.int32)
        self.tile_offsets = self._empty(1 + self.totals.tiles)
        cells = power_of_two(max(MIN_CELLS, *(search.n_cells for search in self.searches)))
        arguments = self.buckets, self.tile_offsets, self.k_offsets, known
        self._launch(segment, len(self.rows), arguments, CELLS=cells, TILE=TILE, TILES=TILES_AT_ONCE)
        return Fetched(known)

    def _filled_ahead(self) -> Tensor:
        """The rows j of each bucket, written before it is known how many there are; none if they are more."""
        unordered = self._empty(AHEAD * sum(row.n_out for row in self.rows))
        self._visit(self.buckets, self.k_offsets, unordered, fill=True)
        return unordered

    def _found(self, known: Fetched) -> list[Found]:
        """What was counted. Waits for the device, but not for what is filled ahead."""
        numbers, columns, sizes = known.tolist(), len(Found._fields), len(self.rows) * len(Found._fields)
        found = [Found(*numbers[first : first + columns]) for first in range(0, sizes, columns)]
        n_cells = max(one.n_cells for one in found)
        if self.by_table and n_cells > MAX_KEY:
            raise NoRoomError
        check_numbered(n_cells)
        return found

    def _place(self, found: list[Found]) -> None:
        """Say in the table where the triplets and the source of each search begin, if it does not already."""
        rows, first_triplet, first_source = [], 0, 0
        for row, one in zip(self.rows, found, strict=True):
            wanted = some_dtype_takes_tiles(row.kernel_size**3, row.n_out, one.length)
            rows.append(
                row._replace(first_triplet=first_triplet, first_source=first_source if wanted else -1)
            )
            first_triplet += one.length
            first_source += row.n_buckets if wanted else 0
        if rows != self.rows:
            self.rows, self.table = rows, on_device(rows, self.device)

    def _fill(
        self, found: list[Found], ahead: Tensor | None
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """i, j and the tensors of all Tiles: source, shared_first and shared_size."""
        length = sum(one.length for one in found)
        unordered = ahead
        if unordered is None or len(unordered) < length:
            unordered = self._empty(length)
            self._visit(self.buckets, self.k_offsets, unordered, fill=True)
        i, j = self._empty(length), self._empty(length)
        source = self._empty(sum(row.n_buckets for row in self.rows if row.first_source >= 0))
        arguments = self.buckets, self.k_offsets, unordered, i, j, source
        names = {"SEARCHES": self.n_rows, "BUCKETS": BUCKETS, "EMPTY": EMPTY}
        self._launch(put_in_order, self.totals.ordering, arguments, **names)
        first, size = self._empty(found[-1].shared, dtype=torch.int64), self._empty(found[-1].shared)
        of_tiles = self.tile_offsets, self.n_of_size, source, first, size
        arguments = self.buckets, self.k_offsets, *of_tiles
        names = {"TILE": TILE, "SIZES": SIZES, "FIRST_SHARED": FIRST_SHARED, "CELLS": CELLS}
        self._launch(share_tiles, self.totals.tiles, arguments, SEARCHES=self.n_rows, **names)
        return i, j, (source, first, size)

    def _tiles(self, row: Row, found: Found, source: Tensor, first: Tensor, size: Tensor) -> Tiles:
        source = source[row.first_source : row.first_source + row.n_buckets]
        offsets = self.tile_offsets[row.first_tile : row.first_tile + -(-row.n_out // TILE) + 1]
        return Tiles(source.view(row.kernel_size**3, row.n_out), first, size, offsets, found.max_shared)

    def _visit(self, buckets: Tensor, k_offsets: Tensor, j: Tensor, fill: bool) -> None:
        wide = self.searches[0].centres.dtype == torch.float64
        constants = {
            "SEARCHES": self.n_rows,
            "BLOCK": BLOCK,
            "FLOAT": tl.float64 if wide else tl.float32,
            "NORMALS": self.searches[0].normals is not None,
            "TABLE": self.by_table,
            "FILL": fill,
        }
        arguments = self.table, len(self.rows), self.steps, buckets, k_offsets, j, j.shape[0]
        options = {"num_warps": 1, "enable_fp_fusion": False}  # distances are, to the last bit, the CPU's
        launch(visit, self.totals.programs, arguments, constants, tuple(constants.values()), **options)

    def _launch(self, kernel, grid: int, arguments: tuple, **constants: int) -> None:
        launch(kernel, grid, (self.table, len(self.rows), *arguments), constants, tuple(constants.values()))

    def _empty(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _zeros(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)


class _Totals(NamedTuple):
    """Of a search, or of all searches together."""

    buckets: int
    offsets: int
    tiles: int
    programs: int
    ordering: int


def _rows(searches: list[Search]) -> tuple[list[Row], _Totals]:
    """The table before the triplets are counted."""
    n_blocks = sum(-(-search.centres.shape[0] // BLOCK) for search in searches)
    rows, first = [], _Totals(0, 0, 0, 0, 0)
    for search in searches:
        index, n_out, K = search.index, search.centres.shape[0], search.n_cells
        normals = [each.data_ptr() for each in search.normals] if search.normals else [0, 0]
        wide = (2 * search.half_width + 1) ** 2
        visited = wide // 2 + 1 if search.visits_half else wide
        shares = visited if n_blocks < MIN_BLOCKS else 1
        rows.append(
            Row(
                centres=search.centres.data_ptr(),
                centre_normals=normals[0],
                point_normals=normals[1],
                cloud=0 if search.cloud is None else search.cloud.data_ptr(),
                n_out=n_out,
                points=0 if search.radius is None else index.points.data_ptr(),
                lookup=index.lookup.data_ptr(),
                order=index.order.data_ptr(),
                frame=index.frame.data_ptr(),
                n_in=index.order.shape[0],
                n_clouds=index.n_clouds,
                size=bits(search.size),
                radius=bits(search.radius or 0.0),
                kernel_size=search.kernel_size,
                half_width=search.half_width,
                stride=search.stride,
                mirrored=search.mirrored,
                symmetric=search.visits_half,
                first_bucket=first.buckets,
                first_offset=first.offsets,
                first_tile=first.tiles,
                first_program=first.programs,
                shares=shares,
                first_ordering=first.ordering,
                first_source=first.buckets,
            )
        )
        first = _Totals(
            buckets=first.buckets + K * n_out,
            offsets=first.offsets + K + 1,
            tiles=first.tiles + -(-n_out // TILE),
            programs=first.programs + -(-n_out // BLOCK) * shares,
            ordering=first.ordering + K * -(-n_out // BUCKETS),
        )
    return rows, first
