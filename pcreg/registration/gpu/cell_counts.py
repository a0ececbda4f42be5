"""How many points each occupied cell has, for one cell size after another."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.geometry.voxel_size import MIN_CROWDED_POINTS, WITHIN_BLOCK, CellCounts, middle_of
from pcreg.kernels.cell_counts import occupied_and_crowded

MAX_TABLE_CELLS = 1 << 26  # points are counted in a table of all cells; of more cells, keys are sorted
STEPS_AT_ONCE = 4  # of a bisection: a wait for the device takes longer than to count for 15 sizes


class DeviceCellCounts(CellCounts):
    """Those of pcreg.geometry.voxel_size, of points (3, S) on a device."""

    columns: Tensor

    def __init__(self, columns: Tensor) -> None:
        self.columns = columns.contiguous()
        highest = columns.amax(1) if columns.shape[1] else columns.new_zeros(3)
        self.highest = highest.cpu().numpy()
        self._counted: dict[float, tuple[int, int]] = {}  # by voxel size: occupied cells, crowded points

    def look_ahead(self, small: float, large: float) -> None:
        if middle_of(small, large) in self._counted:
            return
        sizes, cells = [], 0
        for voxel in _middles(small, large, STEPS_AT_ONCE):  # smaller and smaller, of more and more cells
            cells += math.prod(self._shape(voxel))
            if cells > MAX_TABLE_CELLS:
                break
            sizes.append(voxel)
        self._count(sizes)

    def occupied(self, voxel: float) -> int:
        return self._occupied_and_crowded(voxel)[0]

    def crowded(self, voxel: float) -> int:
        return self._occupied_and_crowded(voxel)[1]

    def of_points(self, kept: Tensor) -> "DeviceCellCounts":
        return DeviceCellCounts(self.columns[:, kept])

    def is_isolated(self, voxel: float) -> Tensor:
        cells, cell, counts = torch.unique(self._keys(voxel), return_inverse=True, return_counts=True)
        blocks, block = torch.unique(cells & ~WITHIN_BLOCK, return_inverse=True)
        shared = torch.zeros_like(blocks).scatter_reduce_(0, block, counts, "amax") > 1
        return ~shared[block][cell]

    def counts(self, voxel: float) -> NDArray[np.int64]:
        found: NDArray[np.int64] = torch.unique(self._keys(voxel), return_counts=True)[1].cpu().numpy()
        return found

    def _occupied_and_crowded(self, voxel: float) -> tuple[int, int]:
        if voxel not in self._counted:
            if math.prod(self._shape(voxel)) > MAX_TABLE_CELLS:
                self._counted[voxel] = self._by_sorting(voxel)
            else:
                self._count([voxel])
        return self._counted[voxel]

    def _count(self, sizes: list[float]) -> None:
        """Count for all of them in a table for each."""
        if sizes:
            scales, shapes = [_scale(voxel) for voxel in sizes], [self._shape(voxel) for voxel in sizes]
            found = occupied_and_crowded(self.columns, scales, shapes, MIN_CROWDED_POINTS)
            self._counted.update(zip(sizes, map(tuple, found.tolist()), strict=True))

    def _by_sorting(self, voxel: float) -> tuple[int, int]:
        counts = self.counts(voxel)
        return len(counts), int(counts[counts >= MIN_CROWDED_POINTS].sum())

    def _shape(self, voxel: float) -> list[int]:
        """Cells of that size along each axis."""
        shape: list[int] = ((self.highest * np.float32(_scale(voxel))).astype(np.int64) + 1).tolist()
        return shape

    def _keys(self, voxel: float) -> Tensor:
        """A number (S,) int64 for the cell of each point."""
        x, y, z = (self.columns * _scale(voxel)).long()
        return x + (y << 20) + (z << 40)


def _scale(voxel: float) -> float:
    """Cells per metre, in float32."""
    return float(np.float32(1 / voxel))


def _middles(small: float, large: float, steps: int) -> list[float]:
    """The largest first, all sizes at which so many steps of a bisection may look."""
    if steps == 0:
        return []
    middle = middle_of(small, large)
    return [*_middles(middle, large, steps - 1), middle, *_middles(small, middle, steps - 1)]
