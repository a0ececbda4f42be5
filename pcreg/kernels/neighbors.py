"""Exact fixed-radius search in continuous space, and surface normals of the neighbourhoods."""

import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.cpu import neighbors as cpu
from pcreg.kernels.cpu import normals as cpu_normals
from pcreg.kernels.stencil import native_triplets


def radius_search(
    queries: Tensor, points: Tensor, query_lengths: Tensor, point_lengths: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """Find all (i, j) with |points[j] - queries[i]| <= radius, i and j of the same cloud of the batch.

    The distance is evaluated in the dtype of the points, as (dx^2 + dy^2) + dz^2 <= radius^2.

    Args:
        queries: (N, 3) float32 or float64, metres.
        points: (P, 3) of the same dtype.
        query_lengths: (B,) int64.
        point_lengths: (B,) int64.
        radius: Metres.

    Returns:
        i (T,) and j (T,) int64, by i and then by j.

    Raises:
        ValueError: The radius is not positive.
    """
    if points.is_cuda:
        found = native_triplets(queries, points, query_lengths, point_lengths, radius, 1, radius)
        return found.i.long(), found.j.long()
    # k-d trees in one thread are faster than torch in two for these sizes.
    arrays = [each.cpu().numpy() for each in (queries, points, query_lengths, point_lengths)]
    i, j = cpu.radius_search(*arrays, radius)
    return torch.from_numpy(i).to(points.device), torch.from_numpy(j).to(points.device)


def surface_normals(points: Tensor, viewpoints: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Fit a plane to the neighbours of each point.

    Takes about 90 bytes for each pair of neighbours on a GPU, 60 on the CPU.

    Args:
        points: (N, 3) float32 or float64, metres.
        viewpoints: (N, 3), the places from where the points were seen.
        i: (T,) int64, rows of points, ascending.
        j: (T,) int64, the neighbours of these points, themselves included.

    Returns:
        (N, 3) unit normals, to the side of the viewpoints; zeros where there are fewer than 4 neighbours, or
        all on a line.
    """
    if not points.is_cuda:
        arrays = (each.numpy() for each in (points, viewpoints, i, j))
        return torch.from_numpy(cpu_normals.surface_normals(*arrays))
    from pcreg.kernels.triton.plane_fit import normals_of  # Triton comes with builds for GPUs only

    counts = counts_of_sorted(i, len(points))
    x, y, z = (points[j] - points[i]).unbind(1)
    terms = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    sums = torch.segment_reduce(terms, "sum", lengths=counts, axis=0, unsafe=True)
    return normals_of(counts, sums.double(), (viewpoints - points).double()).to(points.dtype)
