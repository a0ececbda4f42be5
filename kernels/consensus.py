"""How well motions bring matched points together, and what fits them to the matches that agree."""

import torch
from torch import Tensor

SUMS = 17  # of each motion
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


def _sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    offsets = motions[:, :3, :3] @ p + motions[:, :3, 3:] - q
    squares = (offsets * offsets).sum(1)
    inlier = (squares < distance**2).double()  # (H, P)
    products = (p[:, None] * q).flatten(0, 1)  # (9, P)
    terms = torch.cat([torch.ones_like(p[:1]), p, q, products])
    score = (inlier * (1 - squares / distance**2)).sum(1, keepdim=True)
    return torch.cat([score, inlier @ terms.T], 1)
