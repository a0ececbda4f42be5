"""Numbers of cells and of clouds."""

import torch
from torch import Tensor

MAX_KEY = 2**62  # headroom of one bit below the sign of a number of a cell


def check_numbered(n_cells: float) -> None:
    """Raise ValueError if keys cannot number so many cells; NaN counts as too many."""
    if not n_cells <= MAX_KEY:
        raise ValueError(
            "these clouds are not finite, or span more cells than 62 bits number; take larger cells"
        )


def counts_of_sorted(numbers: Tensor, n: int) -> Tensor:
    """Counts (n,) int64 of 0 .. n - 1 among ascending numbers (N,); torch.bincount would wait for a GPU."""
    return torch.diff(torch.searchsorted(numbers, torch.arange(n + 1, device=numbers.device)))
