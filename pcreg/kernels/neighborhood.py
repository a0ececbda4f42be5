"""How far the k-th nearest point of a query is, and how the nearest are spread.

By comparing all points, as pcreg.kernels.nearest does. All in metres and float64.
"""

import torch
from torch import Tensor

from pcreg.kernels.plane_fit import least_direction

BLOCK_PAIRS = 1 << 22  # of a query and a point, compared at a time on the CPU


def kth_distance(queries: Tensor, points: Tensor, k: int) -> Tensor:
    """From queries (Q, 3) to the k-th nearest of points (M, 3), 0 < k <= M: (Q,)."""
    if points.is_cuda:
        from pcreg.kernels.triton import neighborhood

        return neighborhood.kth_distance(queries, points, k)
    return torch.cat([squared.kthvalue(k, 1).values for _, squared in _blocks(queries, points)]).sqrt()


def scatter_matrices(queries: Tensor, points: Tensor, k: int, radius: float) -> Tensor:
    """(Q, 3, 3), sum over the up to k nearest points closer than `radius` of (p - mean) (p - mean)^T.

    Of points equally far as the k-th nearest all count. Each query has one point at least.
    """
    if points.is_cuda:
        from pcreg.kernels.triton import neighborhood

        return centred(neighborhood.sums(queries, points, k, radius))
    sums = []
    for offsets, squared in _blocks(queries, points):
        farthest = squared.kthvalue(min(k, len(points)), 1, keepdim=True).values
        within = ((squared <= farthest) & (squared < radius**2)).double()
        x, y, z = offsets.unbind(2)
        terms = torch.ones_like(x), x, y, z, x * x, x * y, x * z, y * y, y * z, z * z
        sums.append(torch.stack([(term * within).sum(1) for term in terms], 1))
    return centred(torch.cat(sums))


def least_directions(scatter: Tensor) -> Tensor:
    """The unit directions (Q, 3) of least scatter (Q, 3, 3); zeros where two are as small."""
    if scatter.is_cuda:
        from pcreg.kernels.triton import plane_fit

        return plane_fit.least_directions(scatter)
    return least_direction(torch, *(scatter[:, i, j] for i in range(3) for j in range(i, 3)))


def centred(sums: Tensor) -> Tensor:
    """Scatter matrices (Q, 3, 3) from sums (Q, 10) over offsets: of 1, x, y, z, xx, xy, xz, yy, yz, zz."""
    count, first, (xx, xy, xz, yy, yz, zz) = sums[:, 0], sums[:, 1:4], sums[:, 4:].unbind(1)
    second = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], 1).view(-1, 3, 3)
    return second - first[:, :, None] * first[:, None] / count[:, None, None]


def _blocks(queries: Tensor, points: Tensor):
    """Of some queries at a time the offsets (B, M, 3) of all points, and their squares (B, M)."""
    for block in queries.split(max(1, BLOCK_PAIRS // max(len(points), 1))):
        offsets = points - block[:, None]
        x, y, z = offsets.unbind(2)
        yield offsets, (x * x + y * y) + z * z
