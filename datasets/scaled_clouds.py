"""Clouds of a training batch at every scale at which descriptors will see them (pcreg/features/fcgf.py).

The network knows no unit of length: a cloud thinned to cells `scale` times as wide and divided by `scale` is
one more cloud of the batch. So all scales take one pass, and norms see the points of all of them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from pcreg.datasets.preparation import Coarser


def scaled_clouds(
    clouds: Sequence[Tensor], coarser: Sequence[Sequence[Coarser]], scales: Sequence[float]
) -> tuple[list[Tensor], Tensor]:
    """B clouds (N_b, 3), and what is left of each at each scale but the first, which is 1.

    Returns the clouds at the first scale, then those at the second, and so on, in units of their scale; and
    the rows (N, scales) int64 of all their points that describe a point of the first B: at each scale its
    own, or that of the nearest point left.
    """
    every, start = list(clouds), sum(map(len, clouds))
    columns = [torch.arange(start, device=clouds[0].device)]
    for number, scale in enumerate(scales[1:]):
        column = []
        for cloud, left in zip(clouds, (each[number] for each in coarser), strict=True):
            every.append(cloud[left.rows] / scale)
            column.append(start + left.nearest)
            start += len(left.rows)
        columns.append(torch.cat(column))
    return every, torch.stack(columns, 1)
