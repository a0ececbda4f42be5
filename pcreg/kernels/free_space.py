"""How far sensors saw in each direction, and what of another scan stands in front of that."""

import torch
from torch import Tensor

from pcreg.kernels.range_image import Grid, Views


def views_of(points: Tensor, view: Tensor | None, origins: Tensor, grid: Grid) -> Views:
    """The views from origins (V, 3) of points (N, 3), both float64, contiguous and in metres.

    In each cell the nearest point counts. `view` (N,) int32 says which points belong to which origin, and -1
    to none; by default all belong to the first.
    """
    if points.is_cuda:
        from pcreg.kernels.triton import free_space

        return free_space.views_of(points, view, origins, grid)
    view = torch.zeros(len(points), dtype=torch.int32) if view is None else view
    points, view = points[view >= 0], view[view >= 0].long()
    cell, distance = _directions(points - origins[view], grid)
    cells = grid.rows * grid.columns
    ranges = distance.new_full((len(origins) * cells,), torch.inf)
    ranges = ranges.scatter_reduce(0, view * cells + cell, distance, "amin")
    return Views(origins, ranges.view(-1, cells), grid)


def look(
    views: Views, points: Tensor, motions: Tensor, margin: float, near: float, touched: Tensor | None = None
) -> Tensor:
    """Of each motion (H, 4, 4) how many of the points (N, 3) that it moves are what: (H, 4) int32.

    - In front, by more than `margin` metres, of what was seen in their direction, and
    - in a direction in which something was seen, both added up over all views;
    - in front by more than `near` metres, in one view at least, and not `touched` (N,) bool;
    - in a direction in which something was seen, in one view at least, and touched.

    By default none is touched. Points and motions are float64, contiguous and in metres.
    """
    if points.is_cuda:
        from pcreg.kernels.triton import free_space

        return free_space.look(views, points, motions, margin, near, touched)
    moved = points @ motions[:, :3, :3].mT + motions[:, None, :3, 3]  # (H, N, 3)
    cell, distance = _directions(moved[:, None] - views.origins[:, None], views.grid)  # (H, V, N)
    seen = views.ranges.expand(len(motions), -1, -1).gather(2, cell)
    covered = seen.isfinite()
    in_front, close = (covered & (distance < seen - each) for each in (margin, near))
    touched = points.new_zeros(len(points), dtype=torch.bool) if touched is None else touched
    counts = [in_front.sum((1, 2)), covered.sum((1, 2))]
    counts += [(close.any(1) & ~touched).sum(1), (covered.any(1) & touched).sum(1)]
    return torch.stack(counts, 1).int()


def _directions(points: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """The cell (...) int64 in which points (..., 3) are seen from zero, and their distance (...)."""
    x, y, z = points.unbind(-1)
    distance = ((x * x + y * y) + z * z).sqrt()
    elevation = torch.asin(z / distance.clamp(min=1e-9))
    row, column = ((angle / grid.radians).floor().long() for angle in (elevation, torch.atan2(y, x)))
    return (row + grid.rows // 2) * grid.columns + column + grid.columns // 2, distance
