"""Points sorted by the cell of space that each lies in, for searching and sampling on a GPU.

One sort serves both: the points of a cell are neighbours in the order, a row of cells along z is one
range of it, and sampling takes one point of each cell. Nothing here waits for the device but
`representatives`, to learn how many there are.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import MAX_KEY
from pcreg.kernels.triton.bits import bits, from_bits
from pcreg.kernels.triton.launch import launch

BLOCK = 128  # points of a program
EDGE_SLACK = 1e-5  # by which a cell is wider than the radius it is made for, more than rounding


@dataclass(frozen=True)
class CellIndex:
    """The P points of a batch in the order of their cells: of cloud, then x, y and z."""

    rows: Tensor  # (P, 3) float32 or float64, of voxels int64: the points as they came
    keys: Tensor  # (P,) int64, ascending: the numbers of their cells
    order: Tensor  # (P,) int64, the row of each key's point
    cloud: Tensor  # (P,) int32, row by row: the cloud each belongs to
    frame: Tensor  # (7,) float64: lower corner, upper corner, edge of a cell; of all clouds together
    edge: float  # metres; that of the frame, which may be wider where clouds are far apart
    n_clouds: int

    @staticmethod
    def build(points: Tensor, cloud: Tensor, frame: Tensor, edge: float, n_clouds: int) -> "CellIndex":
        """points and cloud in order of rows, cloud ascending; the frame's corners hold all points."""
        points, P = points.contiguous(), points.shape[0]
        keys = torch.empty(P, dtype=torch.int64, device=points.device)
        arguments = points, cloud, frame, keys, P
        launch(_cells, -(-P // BLOCK), arguments, {"BLOCK": BLOCK}, points.dtype, enable_fp_fusion=False)
        keys, order = torch.sort(keys, stable=True)
        return CellIndex(points, keys, order, cloud, frame, edge, n_clouds)

    @property
    def lookup(self) -> Tensor:
        """Where a search begins to look for a cell."""
        return self.keys

    @cached_property
    def points(self) -> Tensor:
        """(P, 3) in the order of cells."""
        return self.rows[self.order]

    def representatives(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of each occupied cell the point nearest its centre, in the order of cells, as `grid_sample` does.

        -> rows (M,) int64, their points (M, 3) and cloud (M,) int32. Waits for the device, to learn M.
        """
        P = self.keys.shape[0]
        starts_cell = torch.ones(P, dtype=torch.bool, device=self.keys.device)
        torch.ne(self.keys[1:], self.keys[:-1], out=starts_cell[1:])
        starts = torch.nonzero(starts_cell).squeeze(1)
        M = starts.shape[0]
        rows, points = torch.empty_like(starts), self.points.new_empty((M, 3))
        cloud = self.cloud.new_empty(M)
        arguments = self.points, self.cloud, self.order, starts, self.frame, rows, points, cloud, M, P
        variant = points.dtype
        launch(_pick, -(-M // BLOCK), arguments, {"BLOCK": BLOCK}, variant, enable_fp_fusion=False)
        return rows, points, cloud


def check_numbered(n_cells: float) -> None:
    """ValueError if keys cannot number so many cells."""
    if n_cells > MAX_KEY:
        raise ValueError(
            "these clouds are not finite, or span more cells than 62 bits number; take larger cells"
        )


def cloud_numbers(lengths: Tensor, n_rows: int) -> Tensor:
    """The cloud (n_rows,) int32 of each row of a batch. Knowing n_rows, it does not wait for the device."""
    if len(lengths) == 1:  # one launch instead of three
        return torch.zeros(n_rows, dtype=torch.int32, device=lengths.device)
    rows = torch.arange(n_rows, device=lengths.device)
    return torch.searchsorted(lengths.cumsum(0), rows, right=True, out_int32=True)


def frame_around(points: Tensor, min_edge: float, n_clouds: int) -> Tensor:
    """The frame (7,) float64 of all points, its cells no narrower than `min_edge` metres.

    Wider where clouds are so far apart that narrower cells could not be numbered.
    """
    max_per_axis = int((MAX_KEY / max(n_clouds, 1)) ** (1 / 3)) - 1
    return _frame_of(points, min_edge, max_per_axis, 0)


def frame_of_voxels(cells: Tensor, stride: int) -> Tensor:
    """The frame (7,) float64 of voxels (N, 3), which begins where one of `stride` times their width does."""
    return _frame_of(cells, 1.0, 0, stride)


def _frame_of(points: Tensor, edge: float, max_per_axis: int, stride: int) -> Tensor:
    if len(points) == 0:
        return torch.tensor([0.0] * 6 + [edge], dtype=torch.float64, device=points.device)
    lower, upper = torch.aminmax(points, dim=0)
    frame = torch.empty(7, dtype=torch.float64, device=points.device)
    launch(_frame, 1, (lower, upper, frame, bits(edge), max_per_axis, stride), {}, points.dtype)
    return frame


@triton.jit(
    do_not_specialize=["edge", "max_per_axis", "stride"], do_not_specialize_on_alignment=["lower", "upper"]
)
def _frame(
    lower,  # (3,)
    upper,  # (3,)
    frame,  # (7,), out
    edge,  # at least, a float64 bit by bit
    max_per_axis,  # cells; 0: as many as there are
    stride,  # cells, of which the lower corner is a multiple; 0: of nothing
):
    edge = from_bits(edge)
    for axis in tl.static_range(3):
        low, high = tl.load(lower + axis).to(tl.float64), tl.load(upper + axis).to(tl.float64)
        if max_per_axis > 0:
            edge = tl.maximum(edge, (high - low) / max_per_axis)
        if stride > 0:
            low = tl.floor(low / stride) * stride
        tl.store(frame + axis, low)
        tl.store(frame + 3 + axis, high)
    tl.store(frame + 6, edge)


@triton.jit
def cell_of(coordinate, frame, axis):
    """The cell (...) int64 along an axis, exactly as pcreg.kernels.cells.cells_of computes it."""
    lower, edge = tl.load(frame + axis), tl.load(frame + 6)
    return tl.floor((coordinate.to(tl.float64) - lower) / edge).to(tl.int64)


@triton.jit
def cells_along(frame, axis):
    """How many cells there are along an axis, int64."""
    return cell_of(tl.load(frame + 3 + axis), frame, axis) + 1


@triton.jit
def all_cells(n_clouds, frame):
    """How many cells all clouds have, int64; more than can be numbered if coordinates are not finite."""
    cells = tl.maximum(n_clouds, 1).to(tl.float64)
    for axis in tl.static_range(3):
        cells *= cells_along(frame, axis)
    return tl.where((cells >= 1) & (cells < 9e18), cells, 9e18).to(tl.int64)


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["points", "cloud", "frame", "keys"])
def _cells(
    points,  # (P, 3)
    cloud,  # (P,)
    frame,  # (7,)
    keys,  # (P,), out
    P,
    BLOCK: tl.constexpr,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < P
    tl.store(keys + n, number_of_cell(points, cloud, frame, n, inside), mask=inside)


@triton.jit
def number_of_cell(points, cloud, frame, n, inside):
    """The number of the cell, int64, in which the points of rows `n` lie; of one cloud if `cloud` is None."""
    number = tl.zeros_like(n) if cloud is None else tl.load(cloud + n, mask=inside, other=0).to(tl.int64)
    for axis in tl.static_range(3):
        coordinate = tl.load(points + 3 * n + axis, mask=inside, other=0.0)
        number = number * cells_along(frame, axis) + cell_of(coordinate, frame, axis)
    return number


@triton.jit
def lower_bound(keys, n, key, mask, steps):
    """The first place, int64, whose key is no less than `key`, in the ascending keys (n,) of an index.

    `steps` are the bits of n, or more.
    """
    at = tl.zeros_like(key)
    step = tl.full((), 1, tl.int64) << (steps - 1)
    for _ in range(steps):
        further = at + step
        less = tl.load(keys + further - 1, mask=mask & (further <= n), other=1 << 62) < key
        at = tl.where(less, further, at)
        step = step >> 1
    return at


@triton.jit(
    do_not_specialize=["M", "P"],
    do_not_specialize_on_alignment=["points", "cloud", "order", "starts", "frame"],
)
def _pick(
    points,  # (P, 3) in the order of cells
    cloud,  # (P,) in the order of rows, like the next
    order,  # (P,)
    starts,  # (M,) where the points of each cell begin
    frame,  # (7,)
    rows,  # (M,), out, like the next two
    picked,  # (M, 3)
    picked_cloud,  # (M,)
    M,
    P,
    BLOCK: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = m < M
    start = tl.load(starts + m, mask=inside, other=0)
    end = tl.load(starts + m + 1, mask=m + 1 < M, other=P)
    end = tl.where(inside, end, start)
    best, best_at = tl.full((BLOCK,), float("inf"), tl.float64), start
    best_x, best_y, best_z = best, best, best
    for step in range(tl.max(end - start)):
        n = start + step
        member = n < end
        x = _within_cell(points, frame, n, 0, member)
        y = _within_cell(points, frame, n, 1, member)
        z = _within_cell(points, frame, n, 2, member)
        dx, dy, dz = x - 0.5, y - 0.5, z - 0.5
        distance = (dx * dx + dy * dy) + dz * dz
        before = (x < best_x) | ((x == best_x) & ((y < best_y) | ((y == best_y) & (z < best_z))))
        better = member & ((distance < best) | ((distance == best) & before))
        best, best_at = tl.where(better, distance, best), tl.where(better, n, best_at)
        best_x, best_y = tl.where(better, x, best_x), tl.where(better, y, best_y)
        best_z = tl.where(better, z, best_z)
    row = tl.load(order + best_at, mask=inside, other=0)
    tl.store(rows + m, row, mask=inside)
    tl.store(picked_cloud + m, tl.load(cloud + row, mask=inside, other=0), mask=inside)
    for axis in tl.static_range(3):
        coordinate = tl.load(points + 3 * best_at + axis, mask=inside, other=0.0)
        tl.store(picked + 3 * m + axis, coordinate, mask=inside)


@triton.jit
def _within_cell(points, frame, n, axis, mask):
    """Where in its cell a point lies along an axis, in [0, 1), float64."""
    coordinate = tl.load(points + 3 * n + axis, mask=mask, other=0.0).to(tl.float64)
    lower, edge = tl.load(frame + axis), tl.load(frame + 6)
    return (coordinate - lower) / edge - cell_of(coordinate, frame, axis)
