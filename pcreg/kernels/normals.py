"""Surface normals of batched clouds, by the covariance of what lies within a radius."""

import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.cpu import normals as cpu
from pcreg.kernels.cpu.neighbors import pairs_within
from pcreg.kernels.neighbors import radius_search


def surface_normals(points: Tensor, lengths: Tensor, viewpoints: Tensor, radius: float) -> Tensor:
    """Unit normals (N, 3) of clouds with points (N, 3), lengths (B,): of the planes through what is near.

    They point to the side of the `viewpoints` (N, 3) of the points. Zeros where fewer than 4 points lie
    within `radius` metres, or all on a line. Takes about 90 bytes for each of the pairs of points within the
    radius, on the CPU about 60.
    """
    if not points.is_cuda:
        array = points.numpy()
        pairs = pairs_within(array, lengths.numpy(), radius)
        return torch.from_numpy(cpu.surface_normals(array, viewpoints.numpy(), pairs))
    from pcreg.kernels.triton.plane_fit import normals_of  # Triton comes with builds for GPUs only

    i, j = radius_search(points, points, lengths, lengths, radius)
    counts = counts_of_sorted(i, len(points))
    x, y, z = (points[j] - points[i]).unbind(1)
    terms = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    sums = torch.segment_reduce(terms, "sum", lengths=counts, axis=0, unsafe=True)
    return normals_of(counts, sums.double(), (viewpoints - points).double()).to(points.dtype)
