"""Points sorted by grid cell, for searching and sampling on a GPU.

One sort serves both: a row of cells along z is a range of sorted points, and a sample has a point per cell.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import MAX_KEY, check_numbered, starts_of_runs
from pcreg.kernels.triton.launch import launch

BLOCK = tl.constexpr(128)  # points of a program
EDGE_SLACK = 1e-5  # share by which cells are wider than the radius of a pair search, more than rounding


@dataclass(frozen=True)
class CellIndex:
    """The P points of a batch in the order of their cells: by cloud, then x, y and z."""

    rows: Tensor  # (P, 3) float32 or float64, in the order of the batch
    keys: Tensor  # (P,) int64, ascending numbers of cells
    order: Tensor  # (P,) int64, the row of each key's point
    cloud: Tensor  # (P,) int32, the cloud of each row
    frame: Tensor  # (7,) float64: lower corner, upper corner and edge of a cell, for all clouds
    edge: float  # in the unit of the points; the frame may have wider cells, see `frame_around`
    n_clouds: int

    @staticmethod
    def build(points: Tensor, cloud: Tensor, frame: Tensor, edge: float, n_clouds: int) -> "CellIndex":
        """Sort points (P, 3) with ascending cloud (P,) by the cells of a frame that holds all of them."""
        points, P = points.contiguous(), points.shape[0]
        keys = torch.empty(P, dtype=torch.int64, device=points.device)
        arguments = points, cloud, frame, keys, P
        launch(_cells, -(-P // BLOCK.value), arguments, {}, enable_fp_fusion=False)
        keys, order = torch.sort(keys, stable=True)
        return CellIndex(points, keys, order, cloud, frame, edge, n_clouds)

    @cached_property
    def points(self) -> Tensor:
        """Points (P, 3) in the order of cells."""
        return self.rows[self.order]

    def representatives(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (M,) int64, points (M, 3) and clouds (M,) of the point per cell that `grid_sample` keeps.

        Results are in the order of cells. The host waits for the device, which computes M.
        """
        starts = torch.nonzero(starts_of_runs(self.keys)).squeeze(1)
        P, M = self.keys.shape[0], starts.shape[0]
        rows, points = torch.empty_like(starts), self.points.new_empty((M, 3))
        cloud = self.cloud.new_empty(M)
        arguments = self.points, self.cloud, self.order, starts, self.frame, rows, points, cloud, M, P
        launch(_pick, -(-M // BLOCK.value), arguments, {}, enable_fp_fusion=False)
        return rows, points, cloud


def cloud_numbers(lengths: Tensor, n_rows: int) -> Tensor:
    """The cloud (n_rows,) int32 of each row of a batch, without waiting for the device."""
    if len(lengths) == 1:  # one launch instead of three
        return torch.zeros(n_rows, dtype=torch.int32, device=lengths.device)
    rows = torch.arange(n_rows, device=lengths.device)
    return torch.searchsorted(lengths.cumsum(0), rows, right=True, out_int32=True)


def frame_around(points: Tensor, edge: float, n_clouds: int) -> Tensor:
    """The frame (7,) float64 of all points, with wider cells than `edge` where keys could not number them."""
    if len(points) == 0:
        return torch.tensor([0.0] * 6 + [edge], dtype=torch.float64, device=points.device)
    lower, upper = torch.aminmax(points.double(), dim=0)
    max_per_axis = int((MAX_KEY / max(n_clouds, 1)) ** (1 / 3)) - 1
    return torch.cat([lower, upper, ((upper - lower).amax(0, True) / max_per_axis).clamp(min=edge)])


def sample_cells(points: Tensor, lengths: Tensor, size: float, origin: Tensor) -> Tensor:
    """Rows (M,) int64 as `pcreg.kernels.grid.grid_sample` returns them, of P > 0 points."""
    n_clouds = len(lengths)
    cloud = cloud_numbers(lengths, len(points))
    local = points.double() - (origin if n_clouds == 1 else origin[cloud])
    cells = torch.floor(local / size)
    lowest, highest = torch.aminmax(cells, dim=0)
    frame = torch.cat([lowest, highest, torch.ones_like(lowest[:1])])
    index = CellIndex.build(cells, cloud, frame, 1.0, n_clouds)
    frame = torch.zeros_like(frame)
    frame[6] = size  # whose cells begin at the origin
    rows, _, _ = replace(index, rows=local, frame=frame, edge=size).representatives()
    check_numbered(n_clouds * float((highest - lowest + 1).prod()))
    return rows


@triton.jit
def cell_of(coordinate, frame, axis):
    """The cell (...) int64 of coordinates along an axis, equal to those of pcreg.kernels.grid."""
    lower, edge = tl.load(frame + axis), tl.load(frame + 6)
    return tl.floor((coordinate.to(tl.float64) - lower) / edge).to(tl.int64)


@triton.jit
def cells_along(frame, axis):
    """Number of cells along an axis, int64."""
    return cell_of(tl.load(frame + 3 + axis), frame, axis) + 1


@triton.jit
def all_cells(n_clouds, frame):
    """Number of cells of all clouds, int64; more than keys can number if coordinates are not finite."""
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
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < P
    number = tl.load(cloud + n, mask=inside, other=0).to(tl.int64)
    for axis in tl.static_range(3):
        coordinate = tl.load(points + 3 * n + axis, mask=inside, other=0.0)
        number = number * cells_along(frame, axis) + cell_of(coordinate, frame, axis)
    tl.store(keys + n, number, mask=inside)


@triton.jit
def lower_bound(keys, n, key, mask, steps):
    """The first place, int64, of ascending keys (n,) with no less than `key`; `steps` are the bits of n."""
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
    starts,  # (M,), the first place of each cell
    frame,  # (7,)
    rows,  # (M,), out, like the next two
    picked,  # (M, 3)
    picked_cloud,  # (M,)
    M,
    P,
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
    """Position of a point in its cell along an axis, float64 in [0, 1)."""
    coordinate = tl.load(points + 3 * n + axis, mask=mask, other=0.0).to(tl.float64)
    lower, edge = tl.load(frame + axis), tl.load(frame + 6)
    return (coordinate - lower) / edge - cell_of(coordinate, frame, axis)
