"""An index of points on a device, asked as one asks a tree of SciPy."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.kernels.nearest import nearest_points
from pcreg.kernels.neighborhood import count_within, kth_distance
from pcreg.kernels.stencil import native_counts
from pcreg.registration.gpu.arrays import DeviceArray, on


class NearestIndex:
    """Points (M, 3) float64, M >= 1. Numbers of `workers` mean nothing here."""

    def __init__(self, points: NDArray[np.float64] | DeviceArray, device: str) -> None:
        self.data, self.device = points, device
        self._points = on(points, device)

    def query(
        self,
        points: NDArray[np.float64] | DeviceArray,
        k: int | Sequence[int] = 1,
        distance_upper_bound: float = np.inf,
        workers: int = 1,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Metres (N,) to the nearest point, inf if none is closer than the bound, and its row (N,).

        As of scipy.spatial.cKDTree, but without a near point the row is one all the same. Or metres (N, 1) to
        the k-th nearest, given [k], and no rows.
        """
        queries = on(points, self.device)
        if not isinstance(k, int):
            distance = kth_distance(queries, self._points, *k)
            return distance[:, None].cpu().numpy(), np.empty((len(points), 0), dtype=np.int64)
        distance, row = nearest_points(queries, self._points)
        distance = torch.where(distance < distance_upper_bound, distance, torch.inf)
        return distance.cpu().numpy(), row.cpu().numpy()

    def query_ball_point(
        self,
        points: NDArray[np.float64] | DeviceArray,
        r: float,
        return_length: bool = True,
        workers: int = 1,
    ) -> NDArray[np.int64]:
        """How many points lie within `r` metres of each of points (N, 3): (N,)."""
        if points is self.data:
            lengths = torch.full((1,), len(points), device=self.device)
            counts = native_counts(self._points, lengths, r, kernel_size=1, radius=r)[0]
        else:
            counts = count_within(on(points, self.device), self._points, r)
        found: NDArray[np.int64] = counts.long().cpu().numpy()
        return found
