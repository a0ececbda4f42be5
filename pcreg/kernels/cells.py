"""Integer cells of space, packed into one sortable int64 key per point.

A key is cloud, x, y and z in mixed radix, so that sorting keys sorts by cloud first and a row of
cells along z is one contiguous range of keys.
"""

import math

import torch
from torch import Tensor

MAX_KEY = 2**62  # headroom of one bit below the sign


def cloud_of_rows(lengths: Tensor) -> Tensor:
    """The cloud (N,) of each row of a jagged batch with lengths (B,)."""
    return torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)


def counts_of_sorted(numbers: Tensor, n: int) -> Tensor:
    """Counts (n,) int64 of 0 .. n - 1 among ascending numbers (N,); torch.bincount would wait for a GPU."""
    return torch.diff(torch.searchsorted(numbers, torch.arange(n + 1, device=numbers.device)))


def cells_of(points: Tensor, cloud: Tensor, origin: Tensor, size: float) -> Tensor:
    """The cell (N, 3) int64 of each point in a grid whose cell 0 has its lower corner at origin[cloud].

    Computed in float64, so that a cell never depends on the distance of a cloud from the origin. Raises
    ValueError when a cloud is more than 2^62 cells wide.
    """
    cells = torch.floor((points.double() - origin[cloud]) / size)
    if cells.numel() and not cells.abs().amax() < MAX_KEY:
        raise ValueError(f"cells of {size:g} m are too small for these clouds; take larger cells")
    return cells.long()


def bounding_box(cells: Tensor, n_clouds: int) -> tuple[Tensor, Tensor]:
    """The lowest cell (3,) and the shape (3,) of the box around cells (N, 3), N > 0.

    Raises ValueError when so many cells in so many clouds cannot be numbered in 62 bits.
    """
    lowest = cells.amin(0)
    shape = cells.amax(0) - lowest + 1
    if n_clouds * math.prod(shape.tolist()) > MAX_KEY:
        raise ValueError(f"{n_clouds} clouds of {shape.tolist()} cells exceed 62-bit keys; take larger cells")
    return lowest, shape


def pack(cells: Tensor, cloud: Tensor, shape: Tensor) -> Tensor:
    """Keys (N,) int64 of cells (N, 3) with 0 <= cells < shape (3,)."""
    return ((cloud * shape[0] + cells[:, 0]) * shape[1] + cells[:, 1]) * shape[2] + cells[:, 2]
