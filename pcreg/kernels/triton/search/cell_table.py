"""Points sorted by cell, with a table of all cells of their box that tells where those of each begin.

For a search by itself: points are counted into their cells, and no key is sorted, nor looked for by a binary
search. The device is not waited for: of its room a box takes what it needs, and if it needs more it has no
cells, nothing is found, and that shows with the number of triplets.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.triton.bits import bits
from pcreg.kernels.triton.blocks import processors
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search import cell_table_kernels as kernels

POINTS, MEASURED, SPAN = 128, 512, 1024  # of a program, the last cells
PER_PROCESSOR = 4  # programs that go through the cells
CELLS_PER_POINT, MORE_CELLS = 16, 2**23  # at most, in a table: 4 bytes each


class NoRoomError(Exception):
    """The box around the points has far more cells than points, or no finite size."""


@dataclass(frozen=True)
class CellTable:
    """The P points of a batch in the order of their cells: of cloud, then x, y and z. In one cell, in any."""

    points: Tensor  # (P, 3) float32 or float64
    starts: Tensor  # (room + 1,) int32: the points of a cell are starts[cell] .. starts[cell + 1]
    order: Tensor  # (P,) int64, the row of each
    frame: Tensor  # (7, ...) as that of a CellIndex, like the next two; without cells if they had no room
    edge: float
    n_clouds: int

    @property
    def lookup(self) -> Tensor:
        return self.starts

    @staticmethod
    def build(points: Tensor, cloud: Tensor | None, edge: float, n_clouds: int) -> "CellTable":
        """points and cloud (P,) int32 in order of rows, cloud ascending; None if there is only one cloud."""
        points, device, P = points.contiguous(), points.device, points.shape[0]
        room = min(CELLS_PER_POINT * P + MORE_CELLS, 2**31 - 2)
        spans = -(-(room + 1) // SPAN)
        box = torch.empty(kernels.BOX, dtype=torch.float64, device=device)
        starts = torch.empty(room + 1, dtype=torch.int32, device=device)
        scratch = torch.empty(2 * P + spans, dtype=torch.int32, device=device)
        sorted_points = torch.empty_like(points)
        order = torch.empty(P, dtype=torch.int64, device=device)

        parts, blocks = min(kernels.PARTS.value, -(-P // MEASURED)), -(-P // POINTS)
        programs = min(PER_PROCESSOR * processors(device), spans)
        variant, exact = (points.dtype, cloud is None), {"enable_fp_fusion": False}  # cells as on the CPU
        launch(kernels.measure, parts, (box, points, P), {"BLOCK": MEASURED}, points.dtype)
        numbers = bits(edge), n_clouds, parts, room, P
        launch(kernels.clear, programs, (box, starts, scratch, *numbers), {"SPAN": SPAN}, None, **exact)
        arguments = box, starts, scratch, points, cloud, P
        launch(kernels.count, blocks, arguments, {"SPAN": SPAN, "BLOCK": POINTS}, variant, **exact)
        arguments = box, starts, scratch, n_clouds, P
        launch(kernels.begin, programs, arguments, {"SPAN": SPAN}, None, **exact)
        arguments = box, starts, scratch, points, sorted_points, order, P
        launch(kernels.place, blocks, arguments, {"BLOCK": POINTS}, points.dtype, **exact)
        return CellTable(sorted_points, starts, order, box, edge, n_clouds)
