"""A search on a GPU, and the table of searches that run together."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.tiles import ROWS as TILE
from pcreg.kernels.triplets import Symmetry
from pcreg.kernels.triton.search.index import EDGE_SLACK, CellIndex, cloud_numbers, frame_around
from pcreg.kernels.triton.search.order import BUCKETS
from pcreg.kernels.triton.search.visit import BLOCK, Row

MIN_BLOCKS = 2**13  # with fewer, the rows of cells of a block are shared among programs, to fill a GPU


@dataclass(frozen=True)
class Search:
    """A search for the points of an index within a radius of centres.

    A `cube` holds the points whose offsets are at most `radius` along each axis. A `mirrored` search finds
    the transposed triplets of a convolution centred on the points of the index. With normals, kernel cells
    are those of point-pair features.
    """

    index: CellIndex
    centres: Tensor  # (N, 3) contiguous, of the dtype of the points: float32 or float64
    cloud: Tensor  # (N,) int32
    size: float  # edge of a kernel cell, in the unit of the points, like the radius
    kernel_size: int
    radius: float
    cube: bool = False
    mirrored: bool = False
    normals: tuple[Tensor, Tensor] | None = None  # of the centres, and of the points as in the batch
    symmetric: bool = False  # the centres are the points

    @property
    def symmetry(self) -> Symmetry:
        if not self.symmetric:
            return Symmetry.NONE
        return Symmetry.OPPOSITE if self.normals is None else Symmetry.SWAPPED_HEIGHTS

    @property
    def n_cells(self) -> int:
        return self.kernel_size**3

    @property
    def n_buckets(self) -> int:
        return self.n_cells * self.centres.shape[0]

    @property
    def half_width(self) -> int:
        """Index cells to visit on either side of the cell of a centre."""
        # `visit` widens the radius against rounding; neighbours still lie within the true radius.
        return math.ceil(self.radius * (1 + EDGE_SLACK / 2) / self.index.edge)


def pair_search(
    queries: Tensor, points: Tensor, query_lengths: Tensor, lengths: Tensor, radius: float
) -> Search:
    """A search into a single kernel cell, with the arguments of `pcreg.kernels.neighbors.radius_search`."""
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    if queries.dtype != points.dtype or points.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"queries are {queries.dtype} and points {points.dtype}; pass both in float32 or both in float64"
        )
    edge, n_clouds = radius * (1 + EDGE_SLACK), len(lengths)
    cloud = cloud_numbers(lengths, len(points))
    index = CellIndex.build(points, cloud, frame_around(points, edge, n_clouds), edge, n_clouds)
    own = cloud_numbers(query_lengths, len(queries))
    return Search(index, queries.contiguous(), own, radius, 1, radius)


class Totals(NamedTuple):
    """Counts over all searches, for sizes of arrays and launches."""

    buckets: int
    offsets: int
    tiles: int
    programs: int
    ordering: int


def rows_of(searches: list[Search]) -> tuple[list[Row], Totals]:
    """Rows of the table before the triplets are counted, and the totals."""
    n_blocks = sum(-(-search.centres.shape[0] // BLOCK.value) for search in searches)
    rows, first = [], Totals(0, 0, 0, 0, 0)
    for search in searches:
        index, n_out, K = search.index, search.centres.shape[0], search.n_cells
        wide = (2 * search.half_width + 1) ** 2
        visited = wide // 2 + 1 if search.symmetric else wide
        shares = visited if n_blocks < MIN_BLOCKS else 1
        normals = [each.data_ptr() for each in search.normals] if search.normals else [0, 0]
        centres = search.centres.data_ptr(), *normals, search.cloud.data_ptr(), n_out
        pointers = [each.data_ptr() for each in (index.points, index.keys, index.order, index.frame)]
        points = *pointers, index.order.shape[0], index.n_clouds
        lengths = np.array([search.size, search.radius], np.float64).view(np.int64).tolist()
        kernel = *lengths, search.kernel_size, search.half_width, search.mirrored, search.symmetric
        rows.append(Row(*centres, *points, *kernel, *first[:4], shares, first.ordering))
        first = Totals(
            buckets=first.buckets + K * n_out,
            offsets=first.offsets + K + 1,
            tiles=first.tiles + -(-n_out // TILE),
            programs=first.programs + -(-n_out // BLOCK.value) * shares,
            ordering=first.ordering + K * -(-n_out // BUCKETS.value),
        )
    return rows, first
