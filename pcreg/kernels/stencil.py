"""Points within a radius, normals of neighbourhoods, and triplets of convolutions.

The kernel is a local t x t x t grid centred on an original point. Its cells have edge h; cell
(x, y, z), each from -(t-1)/2 to (t-1)/2, has index k = ((x + c) t + (y + c)) t + (z + c) with
c = (t-1)/2, the order of torch.nn.functional.conv3d. Given normals, its axes are a distance and two
heights instead (pcreg.kernels.cpu.stencil).
"""

import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.cpu import neighbors as cpu_neighbors
from pcreg.kernels.cpu import stencil as cpu
from pcreg.kernels.pyramid_config import default_radius, half_width
from pcreg.kernels.triplets import Symmetry, Triplets

Normals = tuple[Tensor, Tensor]  # of the centres (N, 3) and of the points (P, 3), of the points' dtype


def native_triplets(
    centres: Tensor,
    points: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    size: float,
    kernel_size: int = 3,
    radius: float | None = None,
    normals: Normals | None = None,
    cube: bool = False,
) -> Triplets:
    """Find the triplets of a convolution on native points.

    Point j is a neighbour of centre i of the same cloud where |p_j - p_i| <= radius. Its cell is
    round((p_j - p_i) / size), clamped to the kernel. Radius and kernel size are independent.

    Args:
        centres: (N, 3) float32 or float64, metres; `points` itself for a convolution among them.
        points: (P, 3) of the same dtype.
        centre_lengths: (B,) int64.
        point_lengths: (B,) int64.
        size: Edge of a kernel cell, metres.
        kernel_size: Cells per axis, odd.
        radius: Metres; by default that of `default_radius`.
        normals: Those of the centres (N, 3) and of the points (P, 3), for point-pair cells.
        cube: Compare each axis of the offset with `radius`, not its length: between integer places, a sparse
            voxel convolution.

    Raises:
        ValueError: The kernel size is even, or the radius is not positive.
    """
    half_width(kernel_size)  # refuses an even one
    radius = default_radius(size, kernel_size) if radius is None else radius
    if points.is_cuda:
        # Triton comes with builds for GPUs only.
        from pcreg.kernels.triton.search.query import native_search
        from pcreg.kernels.triton.search.run import find_triplets

        clouds = centres, points, centre_lengths, point_lengths
        return find_triplets([native_search(*clouds, size, kernel_size, radius, normals, cube)])[0]
    array = points.numpy()
    centre_array = array if centres is points else centres.numpy()
    lengths = centre_lengths.numpy(), point_lengths.numpy()
    both = normals and (normals[0].numpy(), normals[1].numpy())
    found = cpu.neighbours(centre_array, array, *lengths, size, kernel_size, radius, both, cube)
    i, j, k = map(torch.from_numpy, found)
    symmetric = Symmetry.NONE
    if centres is points:
        symmetric = Symmetry.OPPOSITE if normals is None else Symmetry.SWAPPED_HEIGHTS
    return Triplets.from_unsorted(i, j, k, len(centres), len(points), kernel_size**3, symmetric)


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
    arrays = [each.numpy() for each in (queries, points, query_lengths, point_lengths)]
    pairs = cpu_neighbors.pairs_between(*arrays, radius)
    i, j = cpu_neighbors.in_order(pairs.i, pairs.j, len(points))
    return torch.from_numpy(i), torch.from_numpy(j)


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
        return torch.from_numpy(cpu_neighbors.surface_normals(*arrays))
    from pcreg.kernels.triton.plane_fit import plane_normals  # Triton comes with builds for GPUs only

    counts = counts_of_sorted(i, len(points))
    x, y, z = (points[j] - points[i]).unbind(1)
    terms = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    sums = torch.segment_reduce(terms, "sum", lengths=counts, axis=0, unsafe=True)
    return plane_normals(counts, sums.double(), (viewpoints - points).double()).to(points.dtype)
