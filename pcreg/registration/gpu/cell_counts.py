"""How many points each occupied cell has, for one cell size after another."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.geometry.voxel_size import WITHIN_BLOCK, CellCounts
from pcreg.kernels.cell_counts import occupied_and_crowded

MAX_TABLE_CELLS = 1 << 26  # points are counted in a table of all cells; of more cells, keys are sorted


class DeviceCellCounts(CellCounts):
    """Those of pcreg.geometry.voxel_size, of points (3, S) on a device."""

    columns: Tensor

    def __init__(self, columns: Tensor) -> None:
        self.columns = columns.contiguous()
        highest = columns.amax(1) if columns.shape[1] else columns.new_zeros(3)
        self.highest = highest.cpu().numpy()

    def occupied(self, voxel: float) -> int:
        return self._occupied_and_crowded(voxel, 1)[0]

    def crowded(self, voxel: float, min_points: int) -> int:
        return self._occupied_and_crowded(voxel, min_points)[1]

    def of_points(self, kept: Tensor) -> "DeviceCellCounts":
        return DeviceCellCounts(self.columns[:, kept])

    def is_isolated(self, voxel: float) -> Tensor:
        cells, cell, counts = torch.unique(self._keys(voxel), return_inverse=True, return_counts=True)
        blocks, block = torch.unique(cells & ~WITHIN_BLOCK, return_inverse=True)
        shared = torch.zeros_like(blocks).scatter_reduce_(0, block, counts, "amax") > 1
        return ~shared[block][cell]

    def counts(self, voxel: float) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self._counts(voxel).cpu().numpy()
        return found

    def _occupied_and_crowded(self, voxel: float, min_points: int) -> tuple[int, int]:
        scale = np.float32(1 / voxel)
        shape = ((self.highest * scale).astype(np.int64) + 1).tolist()
        if math.prod(shape) > MAX_TABLE_CELLS:
            counts = self._counts(voxel)
            found = torch.stack([(counts > 0).sum(), (counts * (counts >= min_points)).sum()])
        else:
            found = occupied_and_crowded(self.columns, float(scale), shape, min_points)
        occupied, crowded = found.tolist()
        return occupied, crowded

    def _counts(self, voxel: float) -> Tensor:
        return torch.unique(self._keys(voxel), return_counts=True)[1]

    def _keys(self, voxel: float) -> Tensor:
        """A number (S,) int64 for the cell of each point."""
        x, y, z = (self.columns * float(np.float32(1 / voxel))).long()
        return x + (y << 20) + (z << 40)
