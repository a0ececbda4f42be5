"""Rows in groups that follow one another, such as the points of all sources and of all targets."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from pcreg.kernels.transfer import moved


class RunningStatistics(NamedTuple):
    """Averages of a norm over the groups that it has seen; changed in place."""

    mean: Tensor  # (C,) float32
    variance: Tensor  # (C,) float32, of n - 1
    count: Tensor  # () int64, groups
    momentum: float  # share of the newest group


@dataclass(frozen=True)
class RowGroups:
    """Sizes of G groups of rows."""

    sizes: tuple[int, ...]
    _bounds: dict[torch.device, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.sizes)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless these are groups of two rows at least, of `n_rows` in all."""
        if min(self.sizes) < 2:
            raise ValueError(f"groups of {self.sizes} rows: a batch norm needs two in each in training")
        if sum(self.sizes) != n_rows:
            raise ValueError(f"groups of {self.sizes} rows are not {n_rows} rows")

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Views of rows (N, ...), one for each group."""
        return rows.split(self.sizes)

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64 on `device`, copied there once: group g has the rows bounds[g] ... bounds[g + 1]."""
        if device not in self._bounds:
            self._bounds[device] = moved(torch.tensor([0, *accumulate(self.sizes)]), device)
        return self._bounds[device]


@dataclass(frozen=True)
class PaddedRowGroups:
    """Groups of a padded batch: their sizes are on the device, and rows behind them belong to none."""

    n_rows: int  # with those of no group
    device_bounds: Tensor  # (G + 1,) int64, on a GPU

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.device_bounds) - 1

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless there are `n_rows` rows."""
        if n_rows != self.n_rows:
            raise ValueError(f"groups within {self.n_rows} rows are not {n_rows} rows")

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64, as `RowGroups.bounds`."""
        return self.device_bounds
