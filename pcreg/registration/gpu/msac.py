"""The score of motions by matched points, and their refinement by inliers."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.geometry.se3 import aligning_motion
from pcreg.registration.gpu.arrays import array, on
from pcreg.registration.msac import Floats, MatchedPoints, Rows
from pcreg.registration.prior import Prior

BLOCK_RESIDUALS = 1 << 25  # computed at a time
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
        if len(motions) == 0:
            return np.empty(0, dtype=np.float32)
        at_once = max(1, BLOCK_RESIDUALS // max(1, 3 * len(self.p)))
        blocks = on(motions.astype(np.float32), self.device).split(at_once)
        squares = (_squares(block, self._p32, self._q32) for block in blocks)
        scores = [(1 - each / self.distance**2).clamp(min=0).sum(1) for each in squares]
        return torch.cat(scores).cpu().numpy()

    def refit(self, motions: Floats) -> Floats:
        """All of them at once, each until its score no longer grows."""
        motions, scores = motions.copy(), self.scores(motions)
        growing = np.arange(len(motions))
        while len(growing):
            refitted, inliers = self._fitted(motions[growing])
            refit_scores = self.scores(refitted)
            grown = (refit_scores > scores[growing]) & (inliers >= 3)
            growing = growing[grown]
            motions[growing], scores[growing] = refitted[grown], refit_scores[grown]
        return motions

    def _fitted(self, motions: Floats) -> tuple[Floats, Floats]:
        """Each of motions (H, 4, 4) fitted to its inliers, and how many there were (H,)."""
        inlier = (_squares(on(motions, self.device), self._p, self._q) < self.distance**2).double()
        count = inlier.sum(1)
        share = inlier / count.clamp(min=1)[:, None]  # (H, P)
        p_centre, q_centre = share @ self._p.T, share @ self._q.T  # (H, 3)
        centred = self._p - p_centre[:, :, None], self._q - q_centre[:, :, None]  # (H, 3, P)
        covariance = (centred[0] * inlier[:, None]) @ centred[1].mT
        sums = torch.cat([covariance.flatten(1), p_centre, q_centre, count[:, None]], 1)
        values = array(sums)  # the one wait for the device
        T = aligning_motion(values[:, :9].reshape(-1, 3, 3), values[:, 9:12], values[:, 12:15])
        return T, values[:, 15]


def _squares(motions: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Squared metres (H, P) between p (3, P), moved by motions (H, 4, 4), and q (3, P)."""
    offsets = motions[:, :3, :3] @ p + motions[:, :3, 3:] - q
    return (offsets * offsets).sum(1)


def _determinant(matrices: Tensor) -> Tensor:
    """Of each matrix (S, 3, 3): (S,)."""
    return (torch.linalg.cross(matrices[:, 0], matrices[:, 1]) * matrices[:, 2]).sum(1)
