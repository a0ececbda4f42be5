"""Triplets found on a GPU: of one convolution, or of all layers of a network together."""

from contextlib import suppress

import torch
from torch import Tensor

from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.search.cell_table import CellTable, NoRoomError
from pcreg.kernels.triton.search.index import (
    EDGE_SLACK,
    CellIndex,
    cloud_numbers,
    frame_around,
    frame_of_voxels,
)
from pcreg.kernels.triton.search.occupancy import find_by_occupancy
from pcreg.kernels.triton.search.query import Search
from pcreg.kernels.triton.search.run import SearchRun
from pcreg.kernels.triton.search.voxel_run import VoxelRun

MAX_BUCKETS = 2**28  # of searches that run together; a larger search runs alone


def search_native(
    centres: Tensor,
    points: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    size: float,
    kernel_size: int,
    radius: float,
    normals: tuple[Tensor, Tensor] | None = None,
) -> Triplets:
    """What pcreg.kernels.stencil.native_triplets says."""
    arguments = centres, points, centre_lengths, point_lengths, size, kernel_size, radius, normals
    with suppress(NoRoomError):
        return find_triplets([_native(*arguments, by_table=True)])[0]
    return find_triplets([_native(*arguments, by_table=False)])[0]


def count_native(
    centres: Tensor,
    points: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    size: float,
    kernel_size: int,
    radius: float,
    normals: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """How many points each centre finds in each cell of its kernel: (K, N) int32."""
    arguments = centres, points, centre_lengths, point_lengths, size, kernel_size, radius, normals
    return count_triplets(_native(*arguments, by_table=False))


def _native(
    centres: Tensor,
    points: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    size: float,
    kernel_size: int,
    radius: float,
    normals: tuple[Tensor, Tensor] | None,
    by_table: bool,
) -> Search:
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    if centres.dtype != points.dtype or points.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"centres are {centres.dtype} and points {points.dtype}; pass both in float32 or both in float64"
        )
    edge, n_clouds = radius * (1 + EDGE_SLACK), len(point_lengths)
    cloud = _cloud_numbers(point_lengths, len(points), by_table)
    if by_table:
        index = CellTable.build(points, cloud, edge, n_clouds)
    else:
        index = CellIndex.build(points, cloud, frame_around(points, edge, n_clouds), edge, n_clouds)
    symmetric = centres is points
    centre_cloud = cloud if symmetric else _cloud_numbers(centre_lengths, len(centres), by_table)
    centres = centres.contiguous()
    return Search(
        index, centres, centre_cloud, size, kernel_size, radius, normals=normals, symmetric=symmetric
    )


def _cloud_numbers(lengths: Tensor, n_rows: int, by_table: bool) -> Tensor | None:
    """The cloud of each row, or None for a table of a single cloud: nothing is filled then."""
    return None if by_table and len(lengths) == 1 else cloud_numbers(lengths, n_rows)


def search_voxels(
    centre_cells: Tensor,
    point_cells: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    stride: int,
    kernel_size: int,
) -> Triplets:
    """What pcreg.kernels.stencil.voxel_triplets says: by a bitmap, or else by sorted voxels."""
    arguments = centre_cells, point_cells, centre_lengths, point_lengths, stride, kernel_size
    found = find_by_occupancy(*arguments)
    return search_sorted_voxels(*arguments) if found is None else found


def search_sorted_voxels(
    centre_cells: Tensor,
    point_cells: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    stride: int,
    kernel_size: int,
) -> Triplets:
    """The same for any number of points in a voxel, and voxels however far apart."""
    points, n_clouds = point_cells.contiguous(), len(point_lengths)
    cloud = cloud_numbers(point_lengths, len(points))
    index = CellIndex.build(points, cloud, frame_of_voxels(points, stride), 1.0, n_clouds)
    symmetric = centre_cells is point_cells and stride == 1
    centres = points if symmetric else (centre_cells * stride).contiguous()
    centre_cloud = cloud if symmetric else cloud_numbers(centre_lengths, len(centres))
    search = Search(index, centres, centre_cloud, 1.0, kernel_size, None, stride, symmetric=symmetric)
    return find_triplets([search])[0]


def find_triplets(searches: list[Search]) -> list[Triplets]:
    """The triplets of each search, with their Tiles where a convolution may take them.

    Searches of 2^28 buckets altogether run at once, and take 2 GiB; more run in several goes. All are
    native, or all of voxels, with normals or without, on points of one dtype. Raises ValueError where cells
    cannot be numbered in 62 bits.
    """
    found, group, buckets = [], [], 0
    for search in searches:
        if group and buckets + search.n_buckets > MAX_BUCKETS:
            found += _run(group).triplets()
            group, buckets = [], 0
        group.append(search)
        buckets += search.n_buckets
    return found + (_run(group).triplets() if group else [])


def count_triplets(search: Search) -> Tensor:
    """How many points each centre finds in each cell of its kernel: (K, N) int32, without waiting."""
    return _run([search]).counts()[0]


def _run(searches: list[Search]) -> SearchRun:
    return (VoxelRun if searches[0].radius is None else SearchRun)(searches)
