"""How many points each occupied cell has, for one cell size after another."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.geometry.voxel_size import WITHIN_BLOCK, CellCounts

MAX_TABLE_CELLS = 1 << 26  # points are counted in a table of all cells; of more cells, keys are sorted


class DeviceCellCounts(CellCounts):
    """Those of pcreg.geometry.voxel_size, of points (3, S) on a device."""

    columns: Tensor

    def __init__(self, columns: Tensor) -> None:
        self.columns = columns
        highest = columns.amax(1) if columns.shape[1] else columns.new_zeros(3)
        self.highest = highest.cpu().numpy()

    def occupied(self, voxel: float) -> int:
        return int((self._table(voxel) > 0).sum())

    def crowded(self, voxel: float, min_points: int) -> int:
        table = self._table(voxel)
        return int((table * (table >= min_points)).sum())

    def of_points(self, kept: Tensor) -> "DeviceCellCounts":
        return DeviceCellCounts(self.columns[:, kept])

    def is_isolated(self, voxel: float) -> Tensor:
        x, y, z = (self.columns * float(np.float32(1 / voxel))).long()
        cells, cell, counts = torch.unique(x + (y << 20) + (z << 40), return_inverse=True, return_counts=True)
        blocks, block = torch.unique(cells & ~WITHIN_BLOCK, return_inverse=True)
        shared = torch.zeros_like(blocks).scatter_reduce_(0, block, counts, "amax") > 1
        return ~shared[block][cell]

    def counts(self, voxel: float) -> NDArray[np.int64]:
        table = self._table(voxel)
        found: NDArray[np.int64] = table[table > 0].cpu().numpy()
        return found

    def _table(self, voxel: float) -> Tensor:
        """How many points cells hold, occupied ones among them."""
        scale = np.float32(1 / voxel)
        x, y, z = (self.columns * float(scale)).long()
        nx, ny, nz = ((self.highest * scale).astype(np.int64) + 1).tolist()
        keys = (x * ny + y) * nz + z
        if nx * ny * nz > MAX_TABLE_CELLS:
            return torch.unique(keys, return_counts=True)[1]
        table = torch.zeros(nx * ny * nz, dtype=torch.int32, device=keys.device)
        return table.scatter_add_(0, keys, torch.ones_like(keys, dtype=torch.int32))
