"""The score of motions by matched points, and their refinement by inliers."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.kernels.consensus import SUMS, inlier_sums
from pcreg.registration.gpu.arrays import array, on
from pcreg.registration.msac import Floats, MatchedPoints, Rows
from pcreg.registration.prior import Prior

MIN_SAMPLES = 200  # for fewer the host takes as long
BATCH = 50_000  # samples; for fewer the host takes as long


class DeviceMatchedPoints(MatchedPoints):
    """Those of pcreg.registration.msac, on a device."""

    batch = BATCH

    def __init__(self, p: Floats, q: Floats, distance: float, device: str) -> None:
        super().__init__(p, q, distance)
        self.device = device
        self._p, self._q = on(p.T, device), on(q.T, device)  # (3, P)
        self._p32, self._q32 = self._p.float(), self._q.float()

    def with_like_edges(self, samples: Rows, min_ratio: float) -> Rows:
        columns = on(samples.T.astype(np.int32), self.device)  # (n, S)
        like = torch.ones_like(columns[0], dtype=torch.bool)
        corners = [side[:, column] for column in columns for side in (self._p32, self._q32)]  # (3, S)
        for first, second in combinations(range(len(columns)), 2):
            a, b = (
                (corners[2 * first + side] - corners[2 * second + side]).square().sum(0) for side in (0, 1)
            )
            like &= torch.minimum(a, b) > min_ratio**2 * torch.maximum(a, b)
        return samples[like.cpu().numpy()]

    def motions_of(self, samples: Rows, prior: Prior) -> Floats:
        """On the device where there are many, and nothing is known of the vertical."""
        if len(samples) < MIN_SAMPLES or prior.gravity is not None:
            return super().motions_of(samples, prior)
        rows = on(samples, self.device)
        p, q = (side.T[rows] for side in (self._p, self._q))  # (S, n, 3)
        p_centre, q_centre = p.mean(1, keepdim=True), q.mean(1, keepdim=True)
        U, _, Vt = torch.linalg.svd((p - p_centre).mT @ (q - q_centre))
        sign = _determinant(U) * _determinant(Vt)
        Vt = torch.cat([Vt[:, :2], Vt[:, 2:] * sign[:, None, None]], 1)
        R = U @ Vt  # for rows of points
        t = q_centre - p_centre @ R
        near = (((p @ R + t - q).square().sum(2)) < self.distance**2).all(1)
        T = np.zeros((int(near.sum()), 4, 4))
        T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = array(R[near].mT), array(t[near, 0]), 1
        return T[prior.allows(T, self.distance)]

    def scores(self, motions: Floats) -> NDArray[np.float32]:
        return self.inlier_sums(motions)[:, 0].astype(np.float32)

    def inlier_sums(self, motions: Floats) -> Floats:
        """In one launch, with one wait for the device."""
        if len(motions) == 0:
            return np.empty((0, SUMS))
        return array(inlier_sums(on(motions, self.device), self._p, self._q, self.distance))


def _determinant(matrices: Tensor) -> Tensor:
    """Of each matrix (S, 3, 3): (S,)."""
    return (torch.linalg.cross(matrices[:, 0], matrices[:, 1]) * matrices[:, 2]).sum(1)
