"""The triplets (i, j, k) over which a point convolution sums, grouped by kernel cell."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise

import torch
from torch import Tensor

from pcreg.kernels.cpu.conv import sort_triplets
from pcreg.kernels.cpu.stencil import swap_height_axes
from pcreg.kernels.tiles import ROWS, Tiles


class Symmetry(IntEnum):
    """Symmetry of triplets: for each (i, j, k) there is (j, i, k'), with a cell k' that k determines."""

    NONE = 0
    OPPOSITE = 1  # k' = K - 1 - k: cells along the axes
    SWAPPED_HEIGHTS = 2  # k' is k with both heights exchanged: rotation-invariant (point-pair) cells

    def transposed_weight(self, weight: Tensor) -> Tensor:
        """Exchange the weights (K, ...) of k and k'."""
        if self == Symmetry.NONE:
            return weight
        return weight.flip(0) if self == Symmetry.OPPOSITE else swap_height_axes(weight)


@dataclass(frozen=True)
class Triplets:
    """T triplets (i, j, k) of a convolution, sorted by k, then i, then j."""

    i: Tensor  # (T,) int32, rows of the output
    j: Tensor  # (T,) int32, rows of the input
    k_offsets: Tensor  # (K + 1,) int64, the triplets of cell k are k_offsets[k] .. k_offsets[k + 1]
    n_out: int  # rows of the output
    n_in: int  # rows of the input
    symmetric: Symmetry = Symmetry.NONE  # unless NONE, i and j are rows of the same points
    tiles: Tiles | None = None  # on a GPU
    _transposed: list["Triplets"] = field(default_factory=list, repr=False, compare=False)

    @staticmethod
    def from_unsorted(
        i: Tensor,
        j: Tensor,
        k: Tensor,
        n_out: int,
        n_in: int,
        n_cells: int,
        symmetric: Symmetry = Symmetry.NONE,
    ) -> "Triplets":
        """Sort i < n_out, j < n_in and k < n_cells (T,) int64, which are not checked, into triplets."""
        found = sort_triplets(*(each.cpu().numpy() for each in (i, j, k)), n_out, n_in, n_cells)
        arrays = (torch.from_numpy(each).to(k.device) for each in found)
        return Triplets(*arrays, n_out, n_in, symmetric)

    @staticmethod
    def identity(n: int, device: torch.device) -> "Triplets":
        """Connect each of n points to itself by one kernel cell: the convolution is a linear layer."""
        rows = torch.arange(n, dtype=torch.int32, device=device)
        none = rows.new_zeros(-(-n // ROWS) + 1)
        tiles = Tiles(rows[None], none[:0].long(), none[:0], none, 0)
        return Triplets(rows, rows, torch.arange(2, device=device) * n, n, n, Symmetry.OPPOSITE, tiles)

    def __len__(self) -> int:
        return self.i.shape[0]  # len() of a tensor takes several microseconds

    @property
    def n_cells(self) -> int:
        """Number of cells of the kernel."""
        return self.k_offsets.shape[0] - 1

    def cell_of_triplets(self) -> Tensor:
        """k (T,) int64 of every triplet."""
        return torch.repeat_interleave(
            torch.arange(self.n_cells, device=self.i.device), torch.diff(self.k_offsets)
        )

    def segments(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(i, j) of each kernel cell in turn."""
        bounds = self.k_offsets.tolist()
        for low, high in pairwise(bounds):
            yield self.i[low:high], self.j[low:high]

    @property
    def transposed(self) -> "Triplets":
        """The triplets with i and j exchanged and k kept, for input gradients and up-sampling."""
        if not self._transposed:
            k = self.cell_of_triplets()
            transposed = Triplets.from_unsorted(
                self.j.long(), self.i.long(), k, self.n_in, self.n_out, self.n_cells, self.symmetric
            )
            self.pair_with(transposed)
        return self._transposed[0]

    def pair_with(self, transposed: "Triplets") -> None:
        """Store the transposed triplets, and a copy of these in them: a cycle would stay in memory."""
        transposed._transposed[:] = [replace(self, _transposed=[])]
        self._transposed[:] = [transposed]
