"""Rows in groups that follow one another, such as the points of all sources and of all targets."""

from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from pcreg.kernels.transfer import moved


@dataclass(frozen=True)
class RowGroups:
    """How many rows each of G groups has."""

    sizes: tuple[int, ...]
    _bounds: dict[torch.device, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.sizes)

    def check(self, n_rows: int) -> None:
        """Raises ValueError unless these are groups of two rows at least, of so many in all."""
        if min(self.sizes) < 2:
            raise ValueError(f"groups of {self.sizes} rows: a batch norm needs two in each in training")
        if sum(self.sizes) != n_rows:
            raise ValueError(f"groups of {self.sizes} rows are not {n_rows} rows")

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Of each group its part of rows (N, ...): views."""
        return rows.split(self.sizes)

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64 on `device`: group g has the rows bounds[g] ... bounds[g + 1]; copied there once."""
        if device not in self._bounds:
            self._bounds[device] = moved(torch.tensor([0, *accumulate(self.sizes)]), device)
        return self._bounds[device]


@dataclass(frozen=True)
class PaddedRowGroups:
    """Groups whose sizes the device alone knows, with rows of none behind them: those of a padded batch."""

    n_rows: int  # with those of no group
    device_bounds: Tensor  # (G + 1,) int64, on a GPU

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.device_bounds) - 1

    def check(self, n_rows: int) -> None:
        """Raises ValueError unless there are so many rows."""
        if n_rows != self.n_rows:
            raise ValueError(f"groups within {self.n_rows} rows are not {n_rows} rows")

    def bounds(self, device: torch.device) -> Tensor:
        """What RowGroups.bounds says."""
        return self.device_bounds
