"""What is searched for on a GPU: the neighbours of some points among those of an index."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.triplets import Symmetry
from pcreg.kernels.triton.search.cell_table import CellTable
from pcreg.kernels.triton.search.index import EDGE_SLACK, CellIndex


@dataclass(frozen=True)
class Search:
    """What is wanted: the triplets of centres with the points of an index.

    Native with a radius. With none, of voxels: the index's cells are the voxels, and those of the centres
    `stride` times as wide, or as narrow if `mirrored`. `mirrored`: the centres are the points that a
    convolution centred on the index's points sees, and the triplets its transposed ones. With normals,
    which need a radius, kernel cells are those of kernels/ppf_cells.py.
    """

    index: CellIndex | CellTable  # the latter if native
    centres: Tensor  # (N, 3) contiguous, of the dtype of the points: float32, float64, or of voxels int64
    cloud: Tensor | None  # (N,) int32; None: of the first cloud
    size: float  # metres, the edge of a kernel cell
    kernel_size: int
    radius: float | None  # metres
    stride: int = 1
    mirrored: bool = False
    normals: tuple[Tensor, Tensor] | None = None  # of the centres and, row by row, of the points
    symmetric: bool = False  # the centres are the points

    @property
    def kind(self) -> tuple[bool, bool, torch.dtype, type]:
        """Searches run together if they are of one kind."""
        return self.radius is None, self.normals is not None, self.centres.dtype, type(self.index)

    @property
    def symmetry(self) -> Symmetry:
        if not self.symmetric:
            return Symmetry.NONE
        return Symmetry.OPPOSITE if self.normals is None else Symmetry.SWAPPED_HEIGHTS

    @property
    def visits_half(self) -> bool:
        """Whether each two points are looked at once. Voxels are found, not looked for among points."""
        return self.symmetric and self.radius is not None

    @property
    def n_cells(self) -> int:
        return self.kernel_size**3

    @property
    def n_buckets(self) -> int:
        return self.n_cells * self.centres.shape[0]

    @property
    def half_width(self) -> int:
        """Index cells to visit on either side of a centre's own."""
        if self.radius is None:
            return (self.kernel_size - 1) // 2
        # Of the radius that the kernel widens, only the true part has to be reached.
        return math.ceil(self.radius * (1 + EDGE_SLACK / 2) / self.index.edge)
