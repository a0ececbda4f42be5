"""Grid sampling: keep one original point per cell, the one nearest the cell's centre."""

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.cells import check_numbered, starts_of_runs


def grid_sample(points: Tensor, lengths: Tensor, size: float, origin: Tensor) -> Tensor:
    """Choose the points that represent the occupied cells.

    Args:
        points: (N, 3), metres.
        lengths: (B,) int64.
        size: Edge of a cell, metres.
        origin: (B, 3) float64, the lower corner of each cloud's cell 0.

    Returns:
        Rows (M,) int64, sorted by cloud and then by cell (x, y, z). Of points equally near the centre the one
        with the smallest x, then y, then z is kept, so that the order of the points does not matter.

    Raises:
        ValueError: A cloud spans more cells than a 62-bit key can number.
    """
    if len(points) == 0:
        return torch.empty(0, dtype=torch.int64, device=points.device)
    if points.is_cuda:
        # Triton comes with builds of PyTorch for GPUs only.
        from pcreg.kernels.triton.search.index import sample_cells

        return sample_cells(points, lengths, size, origin)
    cloud = torch.repeat_interleave(lengths)
    inside = (points.double() - origin[cloud]) / size
    cells = torch.floor(inside)
    inside -= cells  # position within the cell, in [0, 1)^3
    cells -= cells.amin(0)
    shape = cells.amax(0) + 1
    check_numbered(len(lengths) * float(shape.prod()))
    # Sorted keys are sorted by cloud, then x, y and z
    key = cloud
    for along, cell in zip(shape.long(), cells.long().unbind(1), strict=True):
        key = key * along + cell
    dx, dy, dz = (inside - 0.5).unbind(1)
    from_centre = (dx * dx + dy * dy) + dz * dz  # the GPU adds in the same order
    keys, member_of = torch.unique(key, return_inverse=True)
    nearest = torch.full((len(keys),), torch.inf, dtype=torch.float64, device=points.device)
    nearest = nearest.scatter_reduce(0, member_of, from_centre, "amin")
    rows = torch.nonzero(from_centre == nearest[member_of]).squeeze(1)
    if len(rows) == len(keys):  # no cell has two equally near points
        return torch.empty_like(rows).scatter_(0, member_of[rows], rows)
    group, (x, y, z) = member_of[rows], inside[rows].T.numpy()
    order = torch.from_numpy(np.lexsort((z, y, x, group.numpy())))
    return rows[order[starts_of_runs(group[order])]]


def sample_cloud(points: Tensor, size: float) -> Tensor:
    """`grid_sample` of one cloud (N, 3), with cells counted from the origin of its frame."""
    lengths = torch.full((1,), len(points), device=points.device)
    return grid_sample(points, lengths, size, points.new_zeros(1, 3, dtype=torch.float64))
