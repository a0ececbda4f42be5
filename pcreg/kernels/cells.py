"""Keys that number cells, and runs of equal keys or cloud numbers."""

import torch
from torch import Tensor

MAX_KEY = 2**62  # of an int64, with one bit to spare


def check_numbered(n_cells: float) -> None:
    """Raise ValueError if keys cannot number so many cells; NaN counts as too many."""
    if not n_cells <= MAX_KEY:
        raise ValueError(
            "these clouds are not finite, or span more cells than 62-bit keys can number; take larger cells"
        )


def counts_of_sorted(ids: Tensor, n: int) -> Tensor:
    """Count each of 0 .. n - 1 among ascending ids (N,): (n,) int64; torch.bincount would wait for a GPU."""
    return torch.diff(torch.searchsorted(ids, torch.arange(n + 1, dtype=ids.dtype, device=ids.device)))


def starts_of_runs(numbers: Tensor) -> Tensor:
    """Mask (N,) of the first element of each run of equal numbers (N,)."""
    starts = torch.ones_like(numbers, dtype=torch.bool)
    torch.ne(numbers[1:], numbers[:-1], out=starts[1:])
    return starts
