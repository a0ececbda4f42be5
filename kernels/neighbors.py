"""Exact fixed-radius search in continuous space, by sorting points into cells and searching the cells.

The same code runs on CPU and GPU tensors. Cells have the edge of the radius, so that the neighbours
of a point lie in 27 of them; the three along z are one contiguous range of sorted keys, which
leaves nine binary searches per query.
"""

from itertools import pairwise

import torch
from torch import Tensor

from kernels.cells import LARGEST_KEY, cells_of, cloud_of_rows, expand_ranges, lower_corners, pack

CANDIDATES_AT_ONCE = 2**22  # bounds the memory of the distance test to about 300 MB


def radius_search(
    queries: Tensor, points: Tensor, query_lengths: Tensor, point_lengths: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """All (i, j) with |points[j] - queries[i]| <= radius, i and j of the same cloud of the batch.

    queries (N, 3) and points (P, 3) of one floating dtype, lengths (B,) int64, radius in metres.
    Returns i (T,) and j (T,) int64, i ascending. The distance is evaluated in the dtype of the
    points, as (dx^2 + dy^2) + dz^2 <= radius^2. Raises ValueError unless radius > 0.
    """
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    none = torch.empty(0, dtype=torch.int64, device=points.device)
    if len(queries) == 0 or len(points) == 0:
        return none, none
    starts, counts, order = _candidate_ranges(queries, points, query_lengths, point_lengths, radius)
    found_i, found_j = [none], [none]
    total = counts.sum(1).cumsum(0)
    last_of_block = torch.nonzero(torch.diff(total // CANDIDATES_AT_ONCE)).squeeze(1) + 1
    bounds = [0, *last_of_block.tolist(), len(queries)]
    for low, high in pairwise(bounds):
        which, item = expand_ranges(starts[low:high].flatten(), counts[low:high].flatten())
        i, j = low + which // 9, order[item]
        dx, dy, dz = (points[j] - queries[i]).unbind(1)
        near = (dx * dx + dy * dy) + dz * dz <= radius * radius
        found_i.append(i[near])
        found_j.append(j[near])
    return torch.cat(found_i), torch.cat(found_j)


def _candidate_ranges(queries, points, query_lengths, point_lengths, radius):
    """For each query the nine ranges of sorted points that can hold neighbours.

    -> starts (N, 9), counts (N, 9), and the order (P,) that sorts the points.
    """
    cloud = cloud_of_rows(point_lengths)
    query_cloud = cloud_of_rows(query_lengths)
    origin = lower_corners(points, point_lengths)
    extent = (points.double() - origin[cloud]).amax()
    # A cell wider than the radius by more than rounding stays exact; a wide, sparse cloud needs
    # it so that its cells can be numbered at all.
    most_per_axis = int((LARGEST_KEY / max(len(point_lengths), 1)) ** (1 / 3)) - 1
    size = max(radius * (1 + 1e-5), float(extent) / most_per_axis)
    cells = cells_of(points, cloud, origin, size)
    shape = cells.amax(0) + 1
    keys, order = torch.sort(pack(cells, cloud, shape), stable=True)

    steps = torch.tensor([-1, 0, 1], device=points.device)
    centre = cells_of(queries, query_cloud, origin, size).clamp(torch.full_like(shape, -2), shape + 1)
    x, y = torch.cartesian_prod(steps, steps).unbind(1)  # (9,) each
    rows = torch.stack([centre[:, 0, None] + x, centre[:, 1, None] + y], -1)  # (N, 9, 2)
    z_low, z_high = (centre[:, 2] - 1).clamp(min=0), torch.minimum(centre[:, 2] + 1, shape[2] - 1)
    inside = ((rows >= 0) & (rows < shape[:2])).all(-1) & (z_low <= z_high)[:, None]
    row_key = ((query_cloud[:, None] * shape[0] + rows[..., 0]) * shape[1] + rows[..., 1]) * shape[2]
    starts = torch.searchsorted(keys, row_key + z_low[:, None])
    stops = torch.searchsorted(keys, row_key + z_high[:, None], right=True)
    return starts, torch.where(inside, stops - starts, 0), order
