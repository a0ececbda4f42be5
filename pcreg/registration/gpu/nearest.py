"""The nearest points of a cloud, searched on a device."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.kernels.nearest import nearest_points
from pcreg.kernels.neighborhood import kth_distance
from pcreg.kernels.stencil import native_counts
from pcreg.registration.gpu.arrays import DeviceArray, on


class NearestIndex:
    """Points (M, 3) float64, M >= 1, asked as one asks a tree of SciPy."""

    def __init__(self, points: NDArray[np.float64] | DeviceArray, device: str) -> None:
        self.device = device
        self._points = on(points, device)

    def query(
        self, points: NDArray[np.float64] | DeviceArray, k: int | Sequence[int] = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Metres (N,) from points (N, 3) to the nearest point, and its row (N,).

        Or metres (N, 1) to the k-th nearest, given [k], and no rows.
        """
        queries = on(points, self.device)
        if not isinstance(k, int):
            distance = kth_distance(queries, self._points, *k)
            return distance[:, None].cpu().numpy(), np.empty((len(points), 0), dtype=np.int64)
        distance, row = nearest_points(queries, self._points)
        return distance.cpu().numpy(), row.cpu().numpy()


def have_neighbors(
    points: NDArray[np.float64] | DeviceArray, count: int, radius: float, device: str
) -> NDArray[np.bool_]:
    """What pcreg.geometry.nearest says, on a device."""
    lengths = torch.full((1,), len(points), device=device)
    counts = native_counts(on(points, device), lengths, radius, kernel_size=1, radius=radius)[0]
    found: NDArray[np.bool_] = (counts > count).cpu().numpy()
    return found
