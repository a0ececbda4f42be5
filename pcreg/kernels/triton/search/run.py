"""Searches that run together on a GPU."""

from typing import NamedTuple

import numpy as np
import torch
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import check_numbered
from pcreg.kernels.tiles import ROWS as TILE
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.blocks import power_of_two
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search.order import put_in_order, segment, share_tiles, size_tiles
from pcreg.kernels.triton.search.query import Search, rows_of
from pcreg.kernels.triton.search.visit import SEARCHES, Row, visit

MIN_CELLS = 27  # kernel cells to compile for, so that any search uses the compiled kernels of a pyramid
MAX_BUCKETS = 2**28  # of searches that run together, which take 2 GiB; a larger search runs alone


def find_triplets(searches: list[Search]) -> list[Triplets]:
    """The triplets of each of one or more searches, with their Tiles.

    All searches have one dtype, all or none have normals, and all or none are cubes. Raises ValueError if
    the cells cannot be numbered in 62 bits.
    """
    found, group, buckets = [], [], 0
    for search in searches:
        if len(group) == SEARCHES.value or (group and buckets + search.n_buckets > MAX_BUCKETS):
            found += _Run(group).triplets()
            group, buckets = [], 0
        group.append(search)
        buckets += search.n_buckets
    return found + _Run(group).triplets()


def count_triplets(search: Search) -> Tensor:
    """Number of points that each centre finds in each kernel cell, (K, N) int32, without waiting."""
    return _Run([search]).counts()


class Found(NamedTuple):
    """Numbers of a search that the host needs before the triplets are filled in."""

    length: int  # triplets
    shared: int  # buckets of several points, of this search and those before
    max_shared: int  # in a tile
    n_cells: int  # cells of the index, which its keys have to number


class _Run:
    """Searches that run together."""

    def __init__(self, searches: list[Search]):
        self.searches, self.device = searches, searches[0].centres.device
        self.rows, self.totals = rows_of(searches)
        self.steps = max(row.n_in for row in self.rows).bit_length()
        self.table = self._on_device(self.rows)

    def counts(self) -> Tensor:
        """Sizes of the buckets of a single search."""
        (search,) = self.searches
        return self._visited()[1 : 1 + search.n_buckets].view(search.n_cells, len(search.centres))

    def triplets(self) -> list[Triplets]:
        buckets, tile_offsets, n_of_size, k_offsets, found = self._count()
        self._place(found)
        length, shared = sum(one.length for one in found), found[-1].shared
        unordered, i, j = (self._empty(length) for _ in range(3))
        self._visit(buckets, k_offsets, unordered, fill=True)
        source = self._empty(self.totals.buckets)
        arguments = buckets, k_offsets, unordered, i, j, source
        self._launch(put_in_order, self.totals.ordering, arguments)
        first, size = self._empty(shared, dtype=torch.int64), self._empty(shared)
        arguments = buckets, k_offsets, tile_offsets, n_of_size, source, first, size
        self._launch(share_tiles, self.totals.tiles, arguments)
        results = []
        for search, row, one in zip(self.searches, self.rows, found, strict=True):
            mine = slice(row.first_triplet, row.first_triplet + one.length)
            K = search.n_cells
            segments = k_offsets[row.first_offset : row.first_offset + K + 1]
            own = source[row.first_bucket : row.first_bucket + search.n_buckets].view(K, row.n_out)
            offsets = tile_offsets[row.first_tile : row.first_tile + -(-row.n_out // TILE) + 1]
            tiles = Tiles(own, first, size, offsets, one.max_shared)
            ends = row.n_out, row.n_in
            results.append(Triplets(i[mine], j[mine], segments, *ends, search.symmetry, tiles))
        return results

    def _visited(self) -> Tensor:
        """(1 + all buckets + all tiles,) int32: a zero, sizes of all buckets, and zeros."""
        size = 1 + self.totals.buckets + self.totals.tiles  # one scan serves buckets and tiles
        counts = torch.zeros(size, dtype=torch.int32, device=self.device)
        nothing = self.table  # the kernel does not read this argument
        self._visit(counts, nothing, counts, fill=False)
        return counts

    def _count(self) -> tuple[Tensor, Tensor, Tensor, Tensor, list[Found]]:
        """Scanned buckets, tile offsets and sizes, k_offsets, and each `Found`; waits for the device."""
        counts, columns = self._visited(), len(Found._fields)
        n_of_size, tile_offsets = self._empty(self.totals.tiles, 2), self._empty(1 + self.totals.tiles)
        self._launch(size_tiles, self.totals.tiles, (counts, n_of_size))
        buckets = torch.cumsum(counts, 0, dtype=torch.int32)
        sizes = len(self.rows) * columns
        # Zeros, because the host also reads them if launches are only collected
        numbers = torch.zeros(sizes + self.totals.offsets, dtype=torch.int64, device=self.device)
        cells = power_of_two(max(MIN_CELLS, *(search.n_cells for search in self.searches)))
        k_offsets = numbers[sizes:]
        arguments = buckets, tile_offsets, k_offsets, numbers
        self._launch(segment, len(self.rows), arguments, CELLS=cells)
        found = [Found(*row) for row in numbers[:sizes].view(-1, columns).tolist()]
        check_numbered(max(one.n_cells for one in found))
        return buckets, tile_offsets, n_of_size, k_offsets, found

    def _place(self, found: list[Found]) -> None:
        """Write the first triplet of each search into the table."""
        first, rows = 0, []
        for row, one in zip(self.rows, found, strict=True):
            rows.append(row._replace(first_triplet=first))
            first += one.length
        if rows != self.rows:
            self.rows, self.table = rows, self._on_device(rows)

    def _visit(self, buckets: Tensor, k_offsets: Tensor, j: Tensor, fill: bool) -> None:
        search = self.searches[0]
        constants = {
            "FLOAT": tl.float64 if search.centres.dtype == torch.float64 else tl.float32,
            "NORMALS": search.normals is not None,
            "CUBE": search.cube,
            "FILL": fill,
        }
        arguments = self.table, len(self.rows), self.steps, buckets, k_offsets, j
        options = {"num_warps": 1, "enable_fp_fusion": False}
        launch(visit, self.totals.programs, arguments, constants, **options)

    def _launch(self, kernel, grid: int, arguments: tuple, **constants: int) -> None:
        launch(kernel, grid, (self.table, len(self.rows), *arguments), constants)

    def _on_device(self, rows: list[Row]) -> Tensor:
        """(searches, columns) int64."""
        return torch.from_numpy(np.array(rows, np.int64)).to(self.device, non_blocking=True)

    def _empty(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)
