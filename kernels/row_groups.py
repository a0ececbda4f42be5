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

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Of each group its part of rows (N, ...): views."""
        return rows.split(self.sizes)

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64 on `device`: group g has the rows bounds[g] ... bounds[g + 1]; copied there once."""
        if device not in self._bounds:
            self._bounds[device] = moved(torch.tensor([0, *accumulate(self.sizes)]), device)
        return self._bounds[device]
