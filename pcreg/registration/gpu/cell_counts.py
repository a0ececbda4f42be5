"""How many points each occupied cell has, for one cell size after another."""

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.geometry.voxel_size import CellCounts
from pcreg.registration.gpu.arrays import on


class DeviceCellCounts(CellCounts):
    """Those of pcreg.geometry.voxel_size, on a device."""

    def __init__(self, columns: NDArray[np.float32], device: str) -> None:
        super().__init__(columns)
        self._columns = on(columns, device)

    def __call__(self, voxel: float) -> NDArray[np.int64]:
        scale = np.float32(1 / voxel)
        x, y, z = (self._columns * float(scale)).long()
        _, ny, nz = ((self.highest * scale).astype(np.int64) + 1).tolist()
        counts = torch.unique((x * ny + y) * nz + z, return_counts=True)[1]
        found: NDArray[np.int64] = counts.cpu().numpy()
        return found
