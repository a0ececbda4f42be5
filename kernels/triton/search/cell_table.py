"""Points sorted by cell, with a table of all cells of their box that tells where those of each begin.

For a search by itself, which can wait for the size of the box: points are counted into their cells, and no
key is sorted, nor looked for by a binary search.
"""

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search.index import CellIndex, check_numbered, number_of_cell

BLOCK = 128  # points of a program
CELLS_PER_POINT, MORE_CELLS = 16, 2**23  # at most, in a table: 4 bytes each, and 4 while it is made


@dataclass(frozen=True)
class CellTable:
    """The P points of a batch in the order of their cells: of cloud, then x, y and z. In one cell, in any."""

    points: Tensor  # (P, 3) float32 or float64
    starts: Tensor  # (cells + 1,) int32: the points of a cell are starts[cell] .. starts[cell + 1]
    order: Tensor  # (P,) int64, the row of each
    frame: Tensor  # as that of a CellIndex, like the next two
    edge: float
    n_clouds: int

    @property
    def lookup(self) -> Tensor:
        return self.starts

    @staticmethod
    def build(
        points: Tensor, cloud: Tensor, frame: Tensor, edge: float, n_clouds: int, n_cells: int
    ) -> "CellTable":
        """As CellIndex.build, of a frame with less than 2^31 cells."""
        points, P = points.contiguous(), points.shape[0]
        counts = torch.zeros(1 + n_cells, dtype=torch.int32, device=points.device)
        cells, slots = (torch.empty(P, dtype=torch.int32, device=points.device) for _ in range(2))
        variant, options = points.dtype, {"enable_fp_fusion": False}
        arguments = points, cloud, frame, counts, cells, slots, P
        launch(_count, -(-P // BLOCK), arguments, {"BLOCK": BLOCK}, variant, **options)
        starts = torch.cumsum(counts, 0, dtype=torch.int32)
        sorted_points = torch.empty_like(points)
        order = torch.empty(P, dtype=torch.int64, device=points.device)
        arguments = points, starts, cells, slots, sorted_points, order, P
        launch(_place, -(-P // BLOCK), arguments, {"BLOCK": BLOCK}, variant)
        return CellTable(sorted_points, starts, order, frame, edge, n_clouds)


def index_of_box(
    points: Tensor, cloud: Tensor, frame: Tensor, edge: float, n_clouds: int
) -> CellIndex | CellTable:
    """A table of the frame's cells, or sorted cells if there are far more than points. Waits for the frame.

    Raises ValueError where coordinates are not finite.
    """
    *corners, edge_of_frame = numbers = frame.tolist()
    n_cells = max(n_clouds, 1) if all(map(math.isfinite, numbers)) else math.inf
    if n_cells < math.inf:
        for lower, upper in zip(corners[:3], corners[3:], strict=True):
            n_cells *= math.floor((upper - lower) / edge_of_frame) + 1
    check_numbered(n_cells)
    if n_cells > min(CELLS_PER_POINT * points.shape[0] + MORE_CELLS, 2**31 - 2):
        return CellIndex.build(points, cloud, frame, edge, n_clouds)
    return CellTable.build(points, cloud, frame, edge, n_clouds, n_cells)


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points", "cloud", "frame"])
def _count(
    points,  # (P, 3)
    cloud,  # (P,)
    frame,  # (7,)
    counts,  # (1 + cells,) zeros, out: how many points each has, behind it
    cells,  # (P,) int32, out: the number of each point's cell
    slots,  # (P,) int32, out: how many points of the cell were counted before it
    P,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cell = number_of_cell(points, cloud, frame, n, n < P).to(tl.int32)
    tl.store(cells + n, cell, mask=n < P)
    slot = tl.atomic_add(counts + 1 + cell, 1, mask=n < P, sem="relaxed")
    tl.store(slots + n, slot, mask=n < P)


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points"])
def _place(
    points,  # (P, 3)
    starts,  # (1 + cells,)
    cells,  # (P,)
    slots,  # (P,)
    points_out,  # (P, 3), out, like the next
    order,  # (P,)
    P,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.load(cells + n, mask=n < P, other=0)
    at = (tl.load(starts + cell, mask=n < P, other=0) + tl.load(slots + n, mask=n < P, other=0)).to(tl.int64)
    tl.store(order + at, n, mask=n < P)
    for axis in tl.static_range(3):
        coordinate = tl.load(points + 3 * n + axis, mask=n < P, other=0.0)
        tl.store(points_out + 3 * at + axis, coordinate, mask=n < P)
