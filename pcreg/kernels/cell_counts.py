"""How crowded the cells of grids are."""

from collections.abc import Sequence

import torch
from torch import Tensor


def occupied_and_crowded(
    columns: Tensor, scales: Sequence[float], shapes: Sequence[Sequence[int]], min_points: int
) -> Tensor:
    """(V, 2) integers: how many cells hold points, and how many points are in cells of `min_points` or more.

    Points (3, S) float32 from zero on are in the cells of their whole coordinates times a float32 scale, for
    each of V scales. Tables hold them, with so many cells along x, y and z; that takes 4 bytes a cell.
    """
    if columns.is_cuda:
        from pcreg.kernels.triton import cell_counts

        return cell_counts.occupied_and_crowded(columns, scales, shapes, min_points)
    found = columns.new_empty(len(scales), 2, dtype=torch.int64)
    for row, scale, shape in zip(found, scales, shapes, strict=True):
        x, y, z = (columns * scale).long()
        counts = torch.bincount((x * shape[1] + y) * shape[2] + z)
        row[0], row[1] = (counts > 0).sum(), (counts * (counts >= min_points)).sum()
    return found
