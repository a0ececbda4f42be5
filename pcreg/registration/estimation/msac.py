"""The score of motions by matched points (MSAC; Torr and Zisserman, 2000), and their fit to inliers."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pcreg.geometry.se3 import aligning_motion, lengths, residuals
from pcreg.registration.matching.prior import Prior
from pcreg.runtime.cached_property import cached_property

BLOCK_RESIDUALS = 1 << 19  # computed at a time, few enough to stay in the cache

Floats, Rows = NDArray[np.float64], NDArray[np.int64]


BATCH = 5_000  # samples drawn between two looks at how many are needed


class MatchedPoints:
    """Points p (P, 3) and q (P, 3), matched row by row, and from how many metres on a match is no inlier.

    A motion scores 1 - (residual / distance)^2 summed over the matches closer than the distance.
    """

    batch = BATCH

    def __init__(self, p: Floats, q: Floats, distance: float) -> None:
        self.p, self.q, self.distance = p, q, distance

    def with_like_edges(self, samples: Rows, min_ratio: float) -> Rows:
        """Those of the samples (S, n) of matches whose edges have like lengths on both sides.

        The shorter over the longer is above `min_ratio`. Edge by edge, so that later edges are measured for
        the remaining samples alone. Strict, so that a sample with a match twice, an edge of no length, is
        refused.
        """
        p, q = self.p.astype(np.float32), self.q.astype(np.float32)
        for first, second in combinations(range(samples.shape[1]), 2):
            i, j = samples[:, first], samples[:, second]
            a, b = (_squared(side[i] - side[j]) for side in (p, q))  # squared lengths
            samples = samples[np.minimum(a, b) > min_ratio**2 * np.maximum(a, b)]
        return samples

    def motions_of(self, samples: Rows, prior: Prior) -> Floats:
        """The allowed motions (H, 4, 4) of samples (S, n) that they bring within the distance."""
        p, q = self.p[samples], self.q[samples]
        T = prior.fit(p, q)
        moved = p @ T[:, :3, :3].transpose(0, 2, 1) + T[:, None, :3, 3]
        T = T[(lengths(moved - q) < self.distance).all(1)]
        return T[prior.allows(T, self.distance)]

    def scores(self, motions: Floats) -> NDArray[np.float32]:
        """Of motions (H, 4, 4): (H,)."""
        R, t = motions[:, :3, :3].astype(np.float32), motions[:, :3, 3].astype(np.float32)
        p, q = self.p.T.astype(np.float32), self.q.T.astype(np.float32)  # (3, P)
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

    def inliers(self, T: Floats) -> NDArray[np.bool_]:
        """The matches (P,) that a motion (4, 4) brings closer than the distance."""
        return residuals(T, self.p, self.q) < self.distance

    def refit(self, motions: Floats) -> Floats:
        """Each of motions (H, 4, 4) fitted to all its inliers, again and again while its score grows."""
        motions, sums = motions.copy(), self.inlier_sums(motions)
        growing = np.arange(len(motions))
        while len(growing := growing[sums[growing, 1] >= 3]):
            refitted = _fitted(sums[growing])
            refitted_sums = self.inlier_sums(refitted)
            grown = refitted_sums[:, 0] > sums[growing, 0]
            growing = growing[grown]
            motions[growing], sums[growing] = refitted[grown], refitted_sums[grown]
        return motions

    def inlier_sums(self, motions: Floats) -> Floats:
        """Of motions (H, 4, 4) sums (H, 17) over the inliers, as of pcreg.kernels.consensus.

        Of the scores, of 1, of p, of q, and of p q^T by rows.
        """
        p, q = self._terms[1:4], self._terms[4:7]  # (3, P)
        sums = np.empty((len(motions), 17))
        size = max(1, BLOCK_RESIDUALS // max(1, 3 * len(self.p)))
        for start in range(0, len(motions), size):
            block = slice(start, start + size)
            offsets = motions[block, :3, :3] @ p + motions[block, :3, 3:] - q  # (H', 3, P)
            squares = np.einsum("hcp,hcp->hp", offsets, offsets)
            inlier = (squares < self.distance**2).astype(np.float64)
            sums[block, 0] = np.maximum(1 - squares / self.distance**2, 0).sum(1)
            sums[block, 1:] = inlier @ self._terms.T
        return sums

    @cached_property
    def _terms(self) -> Floats:
        """Of each match 1, p, q, and p q^T by rows: (16, P)."""
        p, q = self.p.T, self.q.T
        return np.concatenate([np.ones_like(p[:1]), p, q, (p[:, None] * q).reshape(9, -1)])


def _fitted(sums: Floats) -> Floats:
    """The motions (H, 4, 4) that fit inliers with these sums (H, 17) best."""
    count = sums[:, 1:2]
    p_centre, q_centre = sums[:, 2:5] / count, sums[:, 5:8] / count
    covariance = sums[:, 8:].reshape(-1, 3, 3) - count[:, :, None] * p_centre[:, :, None] * q_centre[:, None]
    return aligning_motion(covariance, p_centre, q_centre)


def _squared(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The squared lengths (S,) of rows (S, 3)."""
    squares: NDArray[np.float32] = np.einsum("sc,sc->s", rows, rows)
    return squares
