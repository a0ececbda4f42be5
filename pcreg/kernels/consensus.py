"""How well motions bring matched points together, and what fits them to the matches that agree."""

import torch
from torch import Tensor

from pcreg.kernels import kabsch
from pcreg.kernels.kabsch import MIN_POINTS, rigid_fit

SUMS = 1 + kabsch.SUMS  # of each motion
BLOCK_RESIDUALS = 1 << 22  # computed at a time on the CPU


def inlier_sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    """Of motions (H, 4, 4) and p (3, P), matched with q (3, P), sums (H, 17) over the inliers, all float64.

    Inliers are the matches that a motion brings closer than `distance` metres. The sums are of
    1 - (residual / distance)^2 (MSAC; Torr and Zisserman, 2000), of 1, of p, of q, and of p q^T by rows.
    """
    if p.is_cuda:
        from pcreg.kernels.triton.consensus import inlier_sums as by_kernel

        return by_kernel(motions, p, q, distance)
    blocks = motions.split(max(1, BLOCK_RESIDUALS // max(1, 3 * p.shape[1])))
    return torch.cat([_sums(block, p, q, distance) for block in blocks])


def fit_samples(p: Tensor, q: Tensor, samples: Tensor, distance: float) -> tuple[Tensor, Tensor]:
    """The motions (S, 4, 4) that fit samples (S, n) int64 of the matches best, and which do, (S,) bool.

    Of points p (3, P) and q (3, P) float64, matched column by column, n >= 3. A motion fits if it brings all
    of its sample closer than `distance` metres; another may be anything.
    """
    if p.is_cuda:
        from pcreg.kernels.triton.consensus import fit_samples as by_kernel

        return by_kernel(p, q, samples, distance)
    p, q = p.T[samples], q.T[samples]  # (S, n, 3)
    count = p.new_full((len(p), 1), p.shape[1])
    motions = rigid_fit(torch.cat([count, p.sum(1), q.sum(1), (p.mT @ q).flatten(1)], 1))
    moved = p @ motions[:, :3, :3].mT + motions[:, None, :3, 3]
    return motions, ((moved - q).square().sum(2) < distance**2).all(1)


def refit(motions: Tensor, p: Tensor, q: Tensor, distance: float, count: int) -> tuple[Tensor, Tensor]:
    """Each motion (H, 4, 4) fitted to its inliers, up to `count` times while its score grows.

    As of `inlier_sums`, which says what the score is. Then whether each grew the last time, too: (H,) bool.
    On a GPU nothing is waited for.
    """
    if p.is_cuda:
        from pcreg.kernels.triton.consensus import refit as by_kernels

        return by_kernels(motions, p, q, distance, count)
    sums = inlier_sums(motions, p, q, distance)
    growing = sums[:, 1] >= MIN_POINTS
    for _ in range(count):
        fitted = rigid_fit(sums[:, 1:])
        fitted_sums = inlier_sums(fitted, p, q, distance)
        growing = growing & (fitted_sums[:, 0] > sums[:, 0])
        motions = torch.where(growing[:, None, None], fitted, motions)
        sums = torch.where(growing[:, None], fitted_sums, sums)
        growing = growing & (sums[:, 1] >= MIN_POINTS)
    return motions, growing


def _sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    offsets = motions[:, :3, :3] @ p + motions[:, :3, 3:] - q
    squares = (offsets * offsets).sum(1)
    inlier = (squares < distance**2).double()  # (H, P)
    products = (p[:, None] * q).flatten(0, 1)  # (9, P)
    terms = torch.cat([torch.ones_like(p[:1]), p, q, products])
    score = (inlier * (1 - squares / distance**2)).sum(1, keepdim=True)
    return torch.cat([score, inlier @ terms.T], 1)
