"""One original point per cell of a grid."""

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.geometry import voxel_grid
from pcreg.kernels.grid import grid_sample
from pcreg.registration.gpu.arrays import DeviceArray, kept_on, on

MAX_POINTS = 1 << 25  # sorted at once, in some gigabytes; clouds of more are downsampled on the CPU


def voxel_downsample(
    points: "NDArray[np.float64] | DeviceArray",
    voxel: float,
    origin: NDArray[np.float64] | None = None,
    device: str = "cuda",
) -> NDArray[np.int64]:
    """That of pcreg.geometry.voxel_grid, on a device: the same rows."""
    if not 0 < len(points) <= MAX_POINTS:
        return voxel_grid.voxel_downsample(np.asarray(points), voxel, origin)
    origin = np.zeros(3) if origin is None else origin
    lengths = torch.full((1,), len(points), device=device)
    try:
        rows = grid_sample(kept_on(points, device), lengths, voxel, on(origin[None], device))
    except ValueError:  # more cells than can be numbered
        voxel_grid.cells_around(np.asarray(points), voxel, origin)  # says so as an InputError
        raise
    found: NDArray[np.int64] = rows.cpu().numpy()
    return found
