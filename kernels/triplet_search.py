"""Triplets found on a GPU, written grouped by kernel cell: counted, then filled in, without a sort.

All searches of a hierarchy run in one set of launches. For each centre a program visits the rows of
cells that can hold neighbours: a binary search in the sorted cells, then a short scan.

    visit       how many points each bucket (k, i) holds
    scan        where each bucket begins: that groups by k, then i
    visit       the rows j of each bucket, as they are met
    arrange     j in ascending order within its bucket, and i beside it

The device is waited for once, after the scan, to learn how long the results are. No list of candidates
is kept: beside the triplets there are two int32 per bucket at first, then one, and one per triplet.
Places are 64 bits wide; the scan is an int32 that may wrap around, as a segment has less than 2^31 triplets.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.cell_index import SLACK, CellIndex, cloud_of_rows, frame_around
from kernels.cells import LARGEST_KEY
from kernels.dataflow import some_dtype_takes_tiles
from kernels.search_kernels import arrange, segment, visit
from kernels.search_table import COLUMNS, Row, bits, on_device
from kernels.tile_kernels import fill_tiles, size_tiles
from kernels.tiles import EMPTY, FIRST_SHARED, ROWS, SIZES, Tiles
from kernels.triplets import Triplets

BLOCK = 32  # centres of a program: one warp, as all of a program wait for the longest scan
BUCKETS = 128  # of a program that arranges
CELLS = 32  # kernel cells that a program of tiles holds at a time
MOST_BUCKETS = 2**28  # of searches that run together; a larger search runs alone


@dataclass(frozen=True)
class Search:
    """What is wanted: the triplets of centres with the points of an index.

    Native with a radius. With none, of voxels: the index's cells are the voxels, and those of the centres
    `stride` times as wide, or as narrow if `mirrored`. `mirrored`: the centres are the points that a
    convolution centred on the index's points sees, and the triplets its transposed ones.
    """

    index: CellIndex
    centres: Tensor  # (N, 3), of the dtype of the points
    cloud: Tensor  # (N,) int32
    size: float  # metres, the edge of a kernel cell
    fineness: int
    radius: float | None  # metres
    stride: int = 1
    mirrored: bool = False
    symmetric: bool = False  # the centres are the points

    @property
    def n_cells(self) -> int:
        return self.fineness**3

    @property
    def n_buckets(self) -> int:
        return self.n_cells * len(self.centres)

    @property
    def reach(self) -> int:
        """Index cells to visit on either side of a centre's own."""
        if self.radius is None:
            return (self.fineness - 1) // 2
        return int(-(-self.radius * (1 + SLACK / 2) // self.index.edge))


def search_native(
    centres: Tensor,
    points: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    size: float,
    fineness: int,
    radius: float,
) -> Triplets:
    """What kernels.stencil.native_triplets says."""
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    edge, n_clouds = radius * (1 + SLACK), len(point_lengths)
    cloud = cloud_of_rows(point_lengths, len(points))
    index = CellIndex.build(points, cloud, frame_around(points, edge, n_clouds), edge, n_clouds)
    symmetric = centres is points
    centre_cloud = cloud if symmetric else cloud_of_rows(centre_lengths, len(centres))
    return find_triplets([Search(index, centres, centre_cloud, size, fineness, radius, symmetric=symmetric)])[
        0
    ]


def search_voxels(
    centre_cells: Tensor,
    point_cells: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    stride: int,
    fineness: int,
) -> Triplets:
    """What kernels.stencil.voxel_triplets says."""
    points, n_clouds = point_cells.double(), len(point_lengths)
    frame = frame_around(points, 1.0, n_clouds)
    frame[:3] = torch.floor(frame[:3] / stride) * stride  # where a coarse cell begins
    frame[6] = 1.0
    cloud = cloud_of_rows(point_lengths, len(points))
    index = CellIndex.build(points, cloud, frame, 1.0, n_clouds)
    symmetric = centre_cells is point_cells and stride == 1
    centres = points if symmetric else (centre_cells * stride).double()
    centre_cloud = cloud if symmetric else cloud_of_rows(centre_lengths, len(centres))
    return find_triplets(
        [Search(index, centres, centre_cloud, 1.0, fineness, None, stride, symmetric=symmetric)]
    )[0]


def find_triplets(searches: list[Search]) -> list[Triplets]:
    """The triplets of each search, with their Tiles where a convolution may take them.

    Searches of 2^28 buckets altogether run at once, and take 2 GiB; more run in several goes. All are native, or
    all of voxels, on points of one dtype. Raises ValueError where cells cannot be numbered in 62 bits.
    """
    found, group, buckets = [], [], 0
    for search in searches:
        if group and buckets + search.n_buckets > MOST_BUCKETS:
            found += _find_together(group)
            group, buckets = [], 0
        group.append(search)
        buckets += search.n_buckets
    return found + (_find_together(group) if group else [])


def _find_together(searches: list[Search]) -> list[Triplets]:
    device = searches[0].centres.device
    rows, totals = _rows(searches)
    table = on_device(rows, device)
    constants = {"COLUMNS": COLUMNS, "SEARCHES": triton.next_power_of_2(len(searches))}
    wide = searches[0].centres.dtype == torch.float64
    options = {
        "BLOCK": BLOCK,
        "FLOAT": tl.float64 if wide else tl.float32,
        "VOXEL": searches[0].radius is None,
        "num_warps": 1,
        "enable_fp_fusion": False,  # distances are, to the last bit, those of the CPU
    }
    steps = max(len(search.index.keys) for search in searches).bit_length()
    n = len(searches)

    def empty(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    counts = torch.zeros(1 + totals.buckets, dtype=torch.int32, device=device)
    k_offsets, sizes = (
        empty(totals.offsets, dtype=torch.int64),
        torch.zeros(n, 5, dtype=torch.int64, device=device),
    )
    tile_offsets = torch.zeros(2, 1 + totals.tiles, dtype=torch.int32, device=device)
    if totals.programs:
        visit[(totals.programs,)](
            table, n, steps, counts, k_offsets, counts, FILL=False, **constants, **options
        )
        size_tiles[(totals.tiles,)](
            table, n, counts, tile_offsets, sizes, totals.tiles, ROWS=ROWS, **constants
        )
    buckets = torch.cumsum(counts, 0, dtype=torch.int32)
    del counts
    tile_offsets = torch.cumsum(tile_offsets, 1, dtype=torch.int32)
    cells = triton.next_power_of_2(max(search.n_cells for search in searches))
    segment[(n,)](
        table,
        n,
        buckets,
        tile_offsets,
        k_offsets,
        sizes,
        totals.tiles,
        COLUMNS=COLUMNS,
        CELLS=cells,
        ROWS=ROWS,
    )
    sizes = sizes.tolist()  # waits for the device
    if max(size[4] for size in sizes) > LARGEST_KEY:
        raise ValueError("these clouds span more cells than 62-bit keys can number; take larger cells")

    first_triplet = [0, *accumulate(size[0] for size in sizes)]
    sources = [
        empty(search.n_cells, len(search.centres))
        if some_dtype_takes_tiles(search.n_cells, len(search.centres), size[0])
        else None
        for search, size in zip(searches, sizes, strict=True)
    ]
    rows = [
        row._replace(first_triplet=first, source=0 if source is None else source.data_ptr())
        for row, first, source in zip(rows, first_triplet, sources, strict=False)
    ]
    table = on_device(rows, device)
    i, j, unordered = (empty(first_triplet[-1]) for _ in range(3))
    shared_j, shared_offsets = empty(sizes[-1][2]), empty(sizes[-1][1] + 1)
    if totals.programs:
        visit[(totals.programs,)](
            table, n, steps, buckets, k_offsets, unordered, FILL=True, **constants, **options
        )
        arrange[(totals.arranging,)](
            table, n, buckets, k_offsets, unordered, i, j, BUCKETS=BUCKETS, **constants
        )
        fill_tiles[(totals.tiles,)](
            table,
            n,
            buckets,
            k_offsets,
            j,
            tile_offsets,
            shared_offsets,
            shared_j,
            totals.tiles,
            ROWS=ROWS,
            SIZES=SIZES,
            EMPTY=EMPTY,
            FIRST_SHARED=FIRST_SHARED,
            CELLS=CELLS,
            **constants,
        )
    found = []
    for search, row, size, source in zip(searches, rows, sizes, sources, strict=True):
        segment_ends = k_offsets[row.first_offset : row.first_offset + search.n_cells + 1]
        mine = slice(row.first_triplet, row.first_triplet + size[0])
        found.append(
            Triplets(
                i[mine], j[mine], segment_ends, len(search.centres), len(search.index.keys), search.symmetric
            )
        )
        if source is not None:
            tiles = tile_offsets[
                0, row.first_tile : row.first_tile + triton.cdiv(len(search.centres), ROWS) + 1
            ]
            found[-1].take_tiles(Tiles(source, shared_j, shared_offsets, tiles, size[3]))
    return found


class _Totals(NamedTuple):
    """Of all searches together: what the columns of the same order count."""

    buckets: int
    offsets: int
    tiles: int
    programs: int
    arranging: int


def _rows(searches: list[Search]) -> tuple[list[Row], _Totals]:
    """The table before the triplets are counted."""
    sizes = [
        _Totals(
            buckets=search.n_buckets,
            offsets=search.n_cells + 1,
            tiles=triton.cdiv(len(search.centres), ROWS),
            programs=triton.cdiv(len(search.centres), BLOCK),
            arranging=search.n_cells * triton.cdiv(len(search.centres), BUCKETS),
        )
        for search in searches
    ]
    rows, first = [], _Totals(0, 0, 0, 0, 0)
    for search, size in zip(searches, sizes, strict=True):
        index = search.index
        rows.append(
            Row(
                centres=search.centres.data_ptr(),
                cloud=search.cloud.data_ptr(),
                n_out=len(search.centres),
                points=index.points.data_ptr(),
                keys=index.keys.data_ptr(),
                order=index.order.data_ptr(),
                frame=index.frame.data_ptr(),
                n_in=len(index.keys),
                n_clouds=index.n_clouds,
                size=bits(search.size),
                radius=bits(search.radius or 0.0),
                fineness=search.fineness,
                reach=search.reach,
                stride=search.stride,
                mirrored=search.mirrored,
                first_bucket=first.buckets,
                first_offset=first.offsets,
                first_tile=first.tiles,
                first_program=first.programs,
                first_arranging=first.arranging,
            )
        )
        first = _Totals(*map(sum, zip(first, size, strict=True)))
    return rows, first
