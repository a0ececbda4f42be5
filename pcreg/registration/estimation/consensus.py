"""Scores of motions by matched points, as in MSAC, and their fit to inliers."""

from itertools import combinations

import numpy as np

from pcreg.arrays import Array, is_on_host, like, to_host
from pcreg.geometry.se3 import aligning_motion, dot, lengths, moved_by_each
from pcreg.registration.matching.prior import Prior
from pcreg.runtime import cached_property

BLOCK_RESIDUALS = 1 << 19  # computed at a time, few enough to stay in the cache


class MatchedPoints:
    """Points p (P, 3) and q (P, 3) float64, matched row by row; inliers are closer than `distance` metres.

    A motion scores 1 - (residual / distance)^2 summed over its inliers (MSAC; Torr and Zisserman, 2000).
    Motions (H, 4, 4), samples (S, n) of n matches by row, p and q are on the host; loops over all matches of
    all motions or samples run on the device on which p was given.
    """

    def __init__(self, p: Array, q: Array, distance: float) -> None:
        self.p, self.q, self.distance = to_host(p), to_host(q), distance
        self.on_gpu = not is_on_host(p) and p.is_cuda
        self._p32, self._q32 = (side.astype(np.float32) for side in (self.p, self.q))
        if self.on_gpu:
            self._p32, self._q32 = like(self._p32, p), like(self._q32, p)
            self._columns = like(self.p.T, p), like(self.q.T, p)  # (3, P)

    def with_like_edges(self, samples: np.ndarray, min_ratio: float) -> np.ndarray:
        """Samples (S, n) of distinct matches whose edges, shorter over longer, are above `min_ratio`."""
        left = like(samples, self._p32)
        for first, second in combinations(range(samples.shape[1]), 2):
            i, j = left[:, first], left[:, second]
            edges = self._p32[i] - self._p32[j], self._q32[i] - self._q32[j]
            a, b = (dot(edge, edge) for edge in edges)  # squared lengths
            left = left[(a > min_ratio**2 * b) & (b > min_ratio**2 * a)]
        return to_host(left)

    def motions_of(self, samples: np.ndarray, prior: Prior) -> np.ndarray:
        """Allowed motions (H, 4, 4) fitted to samples (S, n) that they bring within the distance."""
        p, q = self.p[samples], self.q[samples]
        T = prior.fit(p, q)
        T = T[(lengths(moved_by_each(T, p) - q) < self.distance).all(1)]
        return T[prior.allows(T, self.distance)]

    def scores(self, motions: np.ndarray) -> np.ndarray:
        """The scores (H,) float32 of motions (H, 4, 4)."""
        if self.on_gpu:
            return self.inlier_sums(motions)[:, 0].astype(np.float32)
        R, t = motions[:, :3, :3].astype(np.float32), motions[:, :3, 3].astype(np.float32)
        p, q = self._p32.T, self._q32.T  # (3, P)
        P = p.shape[1]
        scores = np.empty(len(R), dtype=np.float32)
        size = max(1, BLOCK_RESIDUALS // (3 * P))
        for start in range(0, len(R), size):
            block = slice(start, start + size)
            offsets = (R[block].reshape(-1, 3) @ p).reshape(-1, 3, P)  # (H', 3, P)
            offsets += t[block, :, None]
            offsets -= q
            squares = np.einsum("hcp,hcp->hp", offsets, offsets)
            scores[block] = np.maximum(1 - squares / self.distance**2, 0).sum(1)
        return scores

    def refit(self, motions: np.ndarray) -> np.ndarray:
        """Fit each of motions (H, 4, 4) to all its inliers, repeatedly while its score grows."""
        motions, sums = motions.copy(), self.inlier_sums(motions)
        growing = np.arange(len(motions))
        while len(growing := growing[sums[growing, 1] >= 3]):
            refitted = _fitted(sums[growing])
            refitted_sums = self.inlier_sums(refitted)
            grown = refitted_sums[:, 0] > sums[growing, 0]
            growing = growing[grown]
            motions[growing], sums[growing] = refitted[grown], refitted_sums[grown]
        return motions

    def inlier_sums(self, motions: np.ndarray) -> np.ndarray:
        """Sums (H, 17) over inliers of motions (H, 4, 4): of their scores and of (1, p) (1, q)^T by rows."""
        if self.on_gpu:
            from pcreg.kernels.triton.points.nearest import inlier_sums  # comes with builds for GPUs only

            p, q = self._columns
            return to_host(inlier_sums(like(motions, p), p, q, self.distance))
        p, q, terms = self.p.T, self.q.T, self._terms
        sums = np.empty((len(motions), 17))
        size = max(1, BLOCK_RESIDUALS // (3 * len(self.p)))
        for start in range(0, len(motions), size):
            block = slice(start, start + size)
            offsets = motions[block, :3, :3] @ p + motions[block, :3, 3:] - q  # (H', 3, P)
            squares = np.einsum("hcp,hcp->hp", offsets, offsets)
            inlier = (squares < self.distance**2).astype(np.float64)
            sums[block, 0] = np.maximum(1 - squares / self.distance**2, 0).sum(1)
            sums[block, 1:] = inlier @ terms.T
        return sums

    @cached_property
    def _terms(self) -> np.ndarray:
        """The products (1, p) (1, q)^T by rows of each match: (16, P)."""
        p, q = (np.concatenate([np.ones_like(side[:, :1]), side], axis=1).T for side in (self.p, self.q))
        return (p[:, None] * q).reshape(16, -1)


def _fitted(sums: np.ndarray) -> np.ndarray:
    """The motions (H, 4, 4) that fit inliers with these sums (H, 17) best."""
    total = sums[:, 1:].reshape(-1, 4, 4)
    count = total[:, 0, :1]
    p_centre, q_centre = total[:, 1:, 0] / count, total[:, 0, 1:] / count
    covariance = total[:, 1:, 1:] - count[:, :, None] * p_centre[:, :, None] * q_centre[:, None]
    return aligning_motion(covariance, p_centre, q_centre)
