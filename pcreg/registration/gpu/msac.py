"""The score of motions by matched points, and their refinement by inliers."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from pcreg.kernels.consensus import SUMS, fit_samples, inlier_sums, refit
from pcreg.registration.estimation.msac import Floats, MatchedPoints, Rows
from pcreg.registration.gpu.arrays import array, on
from pcreg.registration.matching.prior import Prior

MIN_SAMPLES = 200  # to fit motions to; for fewer the host takes as long
MIN_EDGE_SAMPLES = 2_000  # to compare edges of; for fewer the host takes less time than the launches
BATCH = 50_000  # samples; for fewer the host takes as long
REFITS = 100  # without a wait


class DeviceMatchedPoints(MatchedPoints):
    """Those of pcreg.registration.estimation.msac, on a device."""

    batch = BATCH

    def __init__(self, p: Floats, q: Floats, distance: float, device: str) -> None:
        super().__init__(p, q, distance)
        self.device = device
        self._p, self._q = on(p.T, device), on(q.T, device)  # (3, P)
        self._p32, self._q32 = self._p.float(), self._q.float()

    def with_like_edges(self, samples: Rows, min_ratio: float) -> Rows:
        if len(samples) < MIN_EDGE_SAMPLES:
            return super().with_like_edges(samples, min_ratio)
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
        motions, near = fit_samples(self._p, self._q, on(samples, self.device), self.distance)
        rows = array(torch.cat([motions.view(-1, 16), near[:, None]], 1))  # with one wait for the device
        T = rows.compress(rows[:, 16] != 0, axis=0)[:, :16].reshape(-1, 4, 4)
        return T[prior.allows(T, self.distance)]

    def refit(self, motions: Floats) -> Floats:
        """With one wait, or with more where scores still grow after a hundred fits."""
        growing = np.ones(len(motions))
        while growing.any():
            found = refit(on(motions, self.device), self._p, self._q, self.distance, REFITS)
            rows = array(torch.cat([found[0].view(-1, 16), found[1][:, None].double()], 1))
            motions, growing = rows[:, :16].reshape(-1, 4, 4), rows[:, 16]
        return motions

    def scores(self, motions: Floats) -> NDArray[np.float32]:
        return self.inlier_sums(motions)[:, 0].astype(np.float32)

    def inlier_sums(self, motions: Floats) -> Floats:
        """In one launch, with one wait for the device."""
        if len(motions) == 0:
            return np.empty((0, SUMS))
        return array(inlier_sums(on(motions, self.device), self._p, self._q, self.distance))
