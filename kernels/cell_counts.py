"""How crowded the cells of a grid are."""

from collections.abc import Sequence

import torch
from torch import Tensor


def occupied_and_crowded(columns: Tensor, scale: float, shape: Sequence[int], min_points: int) -> Tensor:
    """(2,) integers: how many cells hold points, and how many points are in cells of `min_points` or more.

    Points (3, S) float32 from zero on are in the cells of their whole coordinates times the float32 `scale`,
    which a table of `shape` cells holds; that takes 4 bytes a cell.
    """
    if columns.is_cuda:
        from pcreg.kernels.triton import cell_counts

        return cell_counts.occupied_and_crowded(columns, scale, shape, min_points)
    x, y, z = (columns * scale).long()
    counts = torch.bincount((x * shape[1] + y) * shape[2] + z)
    return torch.stack([(counts > 0).sum(), (counts * (counts >= min_points)).sum()])
