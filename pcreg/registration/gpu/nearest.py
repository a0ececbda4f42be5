"""An index of points on a device, asked as one asks a tree of SciPy."""

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.kernels.nearest import nearest_points
from pcreg.registration.gpu.arrays import on


class NearestIndex:
    """Points (M, 3) float64, M >= 1."""

    def __init__(self, points: NDArray[np.float64], device: str) -> None:
        self.data, self.device = points, device
        self._points = on(points, device)

    def query(
        self, points: NDArray[np.float64], distance_upper_bound: float = np.inf, workers: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Metres (N,) to the nearest point, inf if none is closer than the bound, and its row (N,).

        As of scipy.spatial.cKDTree, whose number of `workers` means nothing here; but without a near point
        the row is one all the same.
        """
        found = nearest_points(on(points, self.device), self._points)
        distance, row = found
        distance = torch.where(distance < distance_upper_bound, distance, torch.inf)
        return distance.cpu().numpy(), row.cpu().numpy()
