"""Clouds of a training batch at every scale at which descriptors will see them (pcreg/fcgf.py).

The network knows no unit of length: a cloud thinned to cells `scale` times as wide and divided by `scale` is
one more cloud of the batch. So all scales take one pass, and norms see the points of all of them.
"""

from collections.abc import Sequence

import torch
from scipy.spatial import cKDTree
from torch import Tensor

BLOCK = 4096  # points whose distances to a whole cloud are computed together


def scaled_clouds(
    clouds: Sequence[Tensor], coarser: Sequence[Sequence[Tensor]], scales: Sequence[float]
) -> tuple[list[Tensor], Tensor]:
    """B clouds (N_b, 3), and for each the rows left at each scale but the first, which is 1.

    Returns the clouds at the first scale, then those at the second, and so on, in units of their scale; and
    the rows (N, scales) int64 of all their points that describe a point of the first B: at each scale its
    own, or that of the nearest point left.
    """
    every, columns = list(clouds), [torch.arange(sum(map(len, clouds)), device=clouds[0].device)]
    start = sum(map(len, clouds))
    for number, scale in enumerate(scales[1:]):
        column = []
        for cloud, rows in zip(clouds, (each[number] for each in coarser), strict=True):
            left = cloud[rows]
            column.append(start + nearest_rows(cloud, left))
            every.append(left / scale)
            start += len(left)
        columns.append(torch.cat(column))
    return every, torch.stack(columns, 1)


def nearest_rows(points: Tensor, among: Tensor) -> Tensor:
    """The row (N,) int64 of the nearest of `among` (M, 3), M > 0, to each of points (N, 3)."""
    if not points.is_cuda:
        return torch.from_numpy(cKDTree(among.numpy()).query(points.numpy())[1])
    # Where |p - q|^2 is least, so is |q|^2 - 2 p q. torch.cdist takes a hundred times as long.
    squared = among.square().sum(1)
    return torch.cat(
        [torch.addmm(squared, some, among.T, alpha=-2).argmin(1) for some in points.split(BLOCK)]
    )
