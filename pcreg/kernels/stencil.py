"""Which points a convolution centre sees, and through which cell of its kernel.

The kernel is a local t x t x t grid centred on an original point. Its cells have edge h; cell
(x, y, z), each from -(t-1)/2 to (t-1)/2, has index k = ((x + c) t + (y + c)) t + (z + c) with
c = (t-1)/2, the order of torch.nn.functional.conv3d. Given normals, its axes are a distance and two
heights instead (kernels/ppf_cells.py).
"""

import torch
from torch import Tensor

from pcreg.kernels.cells import bounding_box, cloud_of_rows, expand_ranges, pack
from pcreg.kernels.cpu import stencil as cpu
from pcreg.kernels.cpu.neighbors import pairs_within
from pcreg.kernels.cpu.stencil import default_radius, half_width
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
) -> Triplets:
    """Triplets of a convolution on native points.

    Point j is a neighbour of centre i when |p_j - p_i| <= radius (by default `default_radius`);
    its cell is round((p_j - p_i) / size), clamped to the kernel, or given `normals` one of
    kernels/ppf_cells.py. Radius and kernel size are independent. centres (N, 3), points (P, 3), lengths (B,)
    int64, size in metres, kernel_size odd. Raises ValueError for another kernel size or a radius that is not
    positive.
    """
    half_width(kernel_size)  # refuses an even one
    radius = default_radius(size, kernel_size) if radius is None else radius
    if points.is_cuda:
        # Triton comes with builds for GPUs only
        from pcreg.kernels.triton.search.triplets import search_native

        return search_native(
            centres, points, centre_lengths, point_lengths, size, kernel_size, radius, normals
        )
    array = points.numpy()
    centre_array = array if centres is points else centres.numpy()
    lengths = centre_lengths.numpy(), point_lengths.numpy()
    both = normals and (normals[0].numpy(), normals[1].numpy())
    found = cpu.neighbours(centre_array, array, *lengths, size, kernel_size, radius, both)
    i, j, k = map(torch.from_numpy, found)
    symmetric = Symmetry.NONE
    if centres is points:
        symmetric = Symmetry.OPPOSITE if normals is None else Symmetry.SWAPPED_HEIGHTS
    return Triplets.from_unsorted(i, j, k, len(centres), len(points), kernel_size**3, symmetric)


def native_counts(
    points: Tensor,
    lengths: Tensor,
    size: float,
    kernel_size: int = 3,
    radius: float | None = None,
    normals: Tensor | None = None,
) -> Tensor:
    """How many points of its own cloud each point sees through each kernel cell: (K, N) int32.

    They are those of `native_triplets`, which a convolution of a constant only counts. `normals` (N, 3).
    Raises ValueError as that does; but clouds that are not finite, or too wide for their cells, go unnoticed
    on a GPU, which would have to be waited for.
    """
    half_width(kernel_size)  # refuses an even one
    radius = default_radius(size, kernel_size) if radius is None else radius
    if points.is_cuda:
        from pcreg.kernels.triton.search.triplets import count_native

        both = None if normals is None else (normals, normals)
        return count_native(points, points, lengths, lengths, size, kernel_size, radius, both)
    pairs = pairs_within(points.numpy(), lengths.numpy(), radius)
    own = None if normals is None else normals.numpy()
    return torch.from_numpy(cpu.counts(pairs, len(points), size, kernel_size, radius, own))


def voxel_triplets(
    centre_cells: Tensor,
    point_cells: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    stride: int = 1,
    kernel_size: int = 3,
) -> Triplets:
    """Triplets of a sparse voxel convolution, the degraded special case.

    Centre i at integer voxel u sees every point whose voxel is stride * u + (x, y, z) for a kernel
    cell (x, y, z): torch's conv3d with padding (t-1)/2, on occupied voxels alone; transposed, its
    conv_transpose3d. centre_cells (N, 3) and point_cells (P, 3) int64.
    Raises ValueError for an even kernel size, and for cells too far apart to be numbered in 62 bits.
    """
    half = half_width(kernel_size)
    if point_cells.is_cuda:
        from pcreg.kernels.triton.search.triplets import search_voxels

        return search_voxels(centre_cells, point_cells, centre_lengths, point_lengths, stride, kernel_size)
    symmetric = Symmetry.OPPOSITE if centre_cells is point_cells and stride == 1 else Symmetry.NONE
    steps = torch.arange(-half, half + 1, device=point_cells.device)
    if len(centre_cells) == 0 or len(point_cells) == 0:
        none = torch.empty(0, dtype=torch.int64, device=point_cells.device)
        return Triplets.from_unsorted(
            none, none, none, len(centre_cells), len(point_cells), kernel_size**3, symmetric
        )
    lowest, shape = bounding_box(point_cells, len(point_lengths))
    keys, order = torch.sort(pack(point_cells - lowest, cloud_of_rows(point_lengths), shape), stable=True)
    centre_cloud = cloud_of_rows(centre_lengths)
    i, j, k = [], [], []
    for index, step in enumerate(torch.cartesian_prod(steps, steps, steps).reshape(-1, 3)):
        wanted = centre_cells * stride + step - lowest
        inside = torch.nonzero(((wanted >= 0) & (wanted < shape)).all(1)).squeeze(1)
        key = pack(wanted[inside], centre_cloud[inside], shape)
        first = torch.searchsorted(keys, key)
        which, item = expand_ranges(first, torch.searchsorted(keys, key, right=True) - first)
        i.append(inside[which])
        j.append(order[item])
        k.append(torch.full_like(item, index))
    i, j, k = torch.cat(i), torch.cat(j), torch.cat(k)
    return Triplets.from_unsorted(i, j, k, len(centre_cells), len(point_cells), kernel_size**3, symmetric)
