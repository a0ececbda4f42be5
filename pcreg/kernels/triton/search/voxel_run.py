"""Searches of voxels that run together on a GPU: one visit finds them, a second writes what it found.

    find        where in the index the voxel of each bucket (k, i) begins, and how many triplets that gives
    scan        where the triplets of each block of buckets begin
    list        i and j of all triplets

The device is waited for once, after the scan. Where no voxel holds several points, what was found becomes the
Tiles without another look; else Tiles are derived when they are asked for. Beside the triplets there is one
int32 per bucket.
"""

from itertools import accumulate

import torch
import triton.language as tl
from torch import Tensor

from pcreg.kernels.dataflow import some_dtype_takes_tiles
from pcreg.kernels.tiles import ROWS, Tiles
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.blocks import power_of_two
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search.index import check_numbered
from pcreg.kernels.triton.search.query import Search
from pcreg.kernels.triton.search.run import BLOCK, SearchRun
from pcreg.kernels.triton.search.table import on_device
from pcreg.kernels.triton.search.voxel_kernels import (
    LISTED,
    find_voxels,
    list_voxels,
    segment_voxels,
)

MIN_CELLS = 32  # kernel cells and one, of a search
DTYPES = {torch.float32: tl.float32, torch.float64: tl.float64, torch.int64: tl.int64}


class VoxelRun(SearchRun):
    """Some searches of voxels; ValueError unless all are of one kind."""

    def __init__(self, searches: list[Search]):
        super().__init__(searches)
        self.places = [self._empty(row.kernel_size**3, row.n_out) for row in self.rows]
        self.rows = [
            row._replace(places=places.data_ptr()) for row, places in zip(self.rows, self.places, strict=True)
        ]
        self.table = on_device(self.rows, self.device)

    def triplets(self) -> list[Triplets]:
        k_offsets = self._empty(self.totals.offsets, dtype=torch.int64)
        begins, lengths, several = self._count(k_offsets, False)
        if several:
            begins, lengths, _ = self._count(k_offsets, True)
        i, j = self._empty(2, sum(lengths))
        constants = {"SEARCHES": self.n_rows, "BLOCK": BLOCK, "SEVERAL": several}
        self._launch(list_voxels, self.totals.ordering, (begins, i, j), **constants)

        results, none = [], self._zeros(1 + max(-(-row.n_out // ROWS) for row in self.rows))
        firsts = accumulate(lengths, initial=0)
        for search, row, first, length, places in zip(
            self.searches, self.rows, firsts, lengths, self.places, strict=False
        ):
            mine = slice(first, first + length)
            segments = k_offsets[row.first_offset : row.first_offset + search.n_cells + 1]
            triplets = Triplets(i[mine], j[mine], segments, row.n_out, row.n_in, search.symmetry)
            if not several and some_dtype_takes_tiles(search.n_cells, row.n_out, length):
                triplets.take_tiles(Tiles.of_single(places, none[: 1 + -(-row.n_out // ROWS)]))
            results.append(triplets)
        return results

    def counts(self) -> list[Tensor]:
        nothing = self.table  # is not written
        self._find(nothing, nothing, several=True, count=True)
        return self.places

    def _count(self, k_offsets: Tensor, several: bool) -> tuple[Tensor, list[int], bool]:
        """Triplets before each block of buckets and each search, and whether a voxel holds `several` points.

        If one does, the triplets before blocks of buckets are wrong.
        """
        n_blocks, n_rows = 1 + LISTED.value * self.totals.ordering, len(self.rows)
        zeros = self._zeros(n_blocks + 3 * n_rows, dtype=torch.int64)
        counts, found = zeros[:n_blocks], zeros[n_blocks:].view(n_rows, 3)
        self._find(counts, found, several, count=False)
        begins = torch.cumsum(counts, 0)
        cells = power_of_two(max(MIN_CELLS, *(search.n_cells + 1 for search in self.searches)))
        self._launch(segment_voxels, len(self.rows), (begins, k_offsets, found), CELLS=cells, BLOCK=BLOCK)
        lengths, in_one, n_cells = zip(*found.tolist(), strict=True)  # waits for the device
        check_numbered(max(n_cells))
        return begins, lengths, any(in_one)

    def _find(self, counts: Tensor, found: Tensor, several: bool, count: bool) -> None:
        constants = {
            "SEARCHES": self.n_rows,
            "BLOCK": BLOCK,
            "DTYPE": DTYPES[self.searches[0].centres.dtype],
            "SEVERAL": several,
            "COUNT": count,
        }
        arguments = self.table, len(self.rows), self.steps, counts, found
        options = {"num_warps": 1}
        launch(find_voxels, self.totals.programs, arguments, constants, tuple(constants.values()), **options)
