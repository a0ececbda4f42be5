"""What a motion brings together, weighted by how alike it is: the sums that the next motion follows from."""

import torch
from torch import Tensor

from pcreg.kernels.kabsch import rigid_fit
from pcreg.kernels.nearest import nearest_points


def weighted_sums(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    T: Tensor,
    distance: float,
    usual: float,
) -> Tensor:
    """Sums (17,) over points p of source (N, 3) and the points q of target (M, 3) nearest to T (4, 4) p.

    A pair d apart, whose features (N, C) and (M, C) float32 have the product c, weighs
    w = max(0, 1 - (d / distance)^2) max(0, c - usual). The sums are of 1 where w > 0, and of
    w (1, p) (1, q)^T by rows, with p before it was moved. Lengths are in metres; all but the features is
    float64.
    """
    if source.is_cuda:
        from pcreg.kernels.triton import agreement

        return agreement.weighted_sums(source, target, source_features, target_features, T, distance, usual)
    apart, nearest = nearest_points(source @ T[:3, :3].T + T[:3, 3], target)
    cosines = (source_features * target_features[nearest]).sum(1).double()
    weights = (1 - (apart / distance) ** 2).clamp(min=0) * (cosines - usual).clamp(min=0)
    one = torch.ones_like(source[:, :1])
    p, q = torch.cat([one, source], 1), torch.cat([one, target[nearest]], 1)
    return torch.cat([(weights > 0).sum()[None], ((p * weights[:, None]).T @ q).view(-1)])


def align(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    T: Tensor,
    distance: float,
    usual: float,
    min_touching: int,
    count: int,
) -> Tensor:
    """The motion (4, 4) after `count` steps from T, each to the motion that fits the weighted pairs best.

    Pairs, weights and sums are those of `weighted_sums`. A motion stays with fewer than `min_touching` pairs.
    On a GPU nothing is waited for.
    """
    if source.is_cuda:
        from pcreg.kernels.triton import agreement

        clouds = source, target, source_features, target_features
        return agreement.align(*clouds, T, distance, usual, min_touching, count)
    for _ in range(count):
        touching, *_ = sums = weighted_sums(
            source, target, source_features, target_features, T, distance, usual
        )
        if touching < min_touching:
            break
        total = sums[1:].view(4, 4)
        T = rigid_fit(torch.cat([total[0, :1], total[1:, 0], total[0, 1:], total[1:, 1:].flatten()])[None])[0]
    return T
