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

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from kernels.blocks import power_of_two
from kernels.cell_index import SLACK, CellIndex, cloud_of_rows, frame_around
from kernels.cells import LARGEST_KEY
from kernels.dataflow import some_dtype_takes_tiles
from kernels.launch import launch
from kernels.search_kernels import arrange, segment, visit
from kernels.search_table import COLUMNS, Row, bits, on_device
from kernels.tile_kernels import fill_tiles, size_tiles
from kernels.tiles import CELLS, EMPTY, FIRST_SHARED, SIZES, Tiles
from kernels.tiles import ROWS as TILE
from kernels.triplets import Triplets

BLOCK = 32  # centres of a program: one warp, as all of a program wait for the longest scan
FEW_BLOCKS = 2**13  # below it, the rows of cells of a block are shared among programs, to fill a GPU
BUCKETS = 128  # of a program that arranges
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
    def n_blocks(self) -> int:
        return -(-self.centres.shape[0] // BLOCK)

    @property
    def n_buckets(self) -> int:
        return self.n_cells * self.centres.shape[0]

    @property
    def reach(self) -> int:
        """Index cells to visit on either side of a centre's own."""
        if self.radius is None:
            return (self.fineness - 1) // 2
        return math.ceil(self.radius * (1 + SLACK / 2) / self.index.edge)


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

    Searches of 2^28 buckets altogether run at once, and take 2 GiB; more run in several goes. All are
    native, or all of voxels, on points of one dtype. Raises ValueError where cells cannot be numbered in
    62 bits.
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
    device, n = searches[0].centres.device, len(searches)
    rows, totals = _rows(searches)
    table = on_device(rows, device)
    shared = {"COLUMNS": COLUMNS, "SEARCHES": power_of_two(n)}
    wide = searches[0].centres.dtype == torch.float64
    coordinates = {"FLOAT": tl.float64 if wide else tl.float32, "VOXEL": searches[0].radius is None}
    steps = max(search.index.keys.shape[0] for search in searches).bit_length()

    def visiting(buckets: Tensor, k_offsets: Tensor, j: Tensor, fill: bool) -> None:
        constants = shared | {"BLOCK": BLOCK} | coordinates | {"FILL": fill}
        arguments = table, n, steps, buckets, k_offsets, j
        variant = shared["SEARCHES"], *coordinates.values(), fill
        # Without fused multiply-adds distances are, to the last bit, those of the CPU.
        launch(visit, totals.programs, arguments, constants, variant, num_warps=1, enable_fp_fusion=False)

    counts = torch.zeros(1 + totals.buckets, dtype=torch.int32, device=device)
    n_shared = torch.zeros(1 + totals.tiles, dtype=torch.int32, device=device)
    sizes = torch.zeros(n, 4, dtype=torch.int64, device=device)
    k_offsets = torch.empty(totals.offsets, dtype=torch.int64, device=device)
    visiting(counts, k_offsets, counts, fill=False)
    constants = shared | {"TILE": TILE}
    launch(size_tiles, totals.tiles, (table, n, counts, n_shared, sizes), constants, shared["SEARCHES"])
    buckets = torch.cumsum(counts, 0, dtype=torch.int32)
    del counts
    tile_offsets = torch.cumsum(n_shared, 0, dtype=torch.int32)
    cells = power_of_two(max(search.n_cells for search in searches))
    constants = {"COLUMNS": COLUMNS, "CELLS": cells, "TILE": TILE}
    launch(segment, n, (table, n, buckets, tile_offsets, k_offsets, sizes), constants, cells)
    sizes = sizes.tolist()  # waits for the device
    if max(cells for *_, cells in sizes) > LARGEST_KEY:
        raise ValueError("these clouds span more cells than 62-bit keys can number; take larger cells")

    first_triplet = [0, *accumulate(length for length, *_ in sizes)]
    lengths = torch.Size([first_triplet[-1]])
    i, j, unordered = (torch.empty(lengths, dtype=torch.int32, device=device) for _ in range(3))
    sources = [_source(search, size[0]) for search, size in zip(searches, sizes, strict=True)]
    for number, source in enumerate(sources):
        pointer = 0 if source is None else source.data_ptr()
        rows[number] = rows[number]._replace(first_triplet=first_triplet[number], source=pointer)
    table = on_device(rows, device)
    visiting(buckets, k_offsets, unordered, fill=True)
    arguments = table, n, buckets, k_offsets, unordered, i, j
    constants = shared | {"BUCKETS": BUCKETS}
    launch(arrange, totals.arranging, arguments, constants, shared["SEARCHES"])
    del unordered
    shared_first = torch.empty(sizes[-1][1], dtype=torch.int64, device=device)
    shared_size = torch.empty(sizes[-1][1], dtype=torch.int32, device=device)
    arguments = table, n, buckets, k_offsets, j, tile_offsets, shared_first, shared_size
    constants = shared | {
        "TILE": TILE,
        "SIZES": SIZES,
        "EMPTY": EMPTY,
        "FIRST_SHARED": FIRST_SHARED,
        "CELLS": CELLS,
    }
    launch(fill_tiles, totals.tiles, arguments, constants, shared["SEARCHES"])

    found = []
    for search, row, (length, _, most_shared, _), source in zip(searches, rows, sizes, sources, strict=True):
        mine = slice(row.first_triplet, row.first_triplet + length)
        segments = k_offsets[row.first_offset : row.first_offset + search.n_cells + 1]
        n_in = search.index.keys.shape[0]
        found.append(Triplets(i[mine], j[mine], segments, row.n_out, n_in, search.symmetric))
        if source is not None:
            tiles = tile_offsets[row.first_tile : row.first_tile + -(-row.n_out // TILE) + 1]
            found[-1].take_tiles(Tiles(source, shared_first, shared_size, tiles, most_shared))
    return found


def _source(search: Search, n_triplets: int) -> Tensor | None:
    """Room for the source of Tiles, if a convolution may take them."""
    shape = search.n_cells, search.centres.shape[0]
    if not some_dtype_takes_tiles(*shape, n_triplets):
        return None
    return torch.empty(shape, dtype=torch.int32, device=search.centres.device)


class _Totals(NamedTuple):
    """Of a search, or of all searches together."""

    buckets: int
    offsets: int
    tiles: int
    programs: int
    arranging: int


def _rows(searches: list[Search]) -> tuple[list[Row], _Totals]:
    """The table before the triplets are counted."""
    n_blocks = sum(search.n_blocks for search in searches)
    rows, first = [], _Totals(0, 0, 0, 0, 0)
    for search in searches:
        index, n_out, K = search.index, search.centres.shape[0], search.n_cells
        shares = (2 * search.reach + 1) ** 2 if n_blocks < FEW_BLOCKS else 1
        rows.append(
            Row(
                centres=search.centres.data_ptr(),
                cloud=search.cloud.data_ptr(),
                n_out=n_out,
                points=index.points.data_ptr(),
                keys=index.keys.data_ptr(),
                order=index.order.data_ptr(),
                frame=index.frame.data_ptr(),
                n_in=index.keys.shape[0],
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
                shares=shares,
                first_arranging=first.arranging,
            )
        )
        first = _Totals(
            buckets=first.buckets + K * n_out,
            offsets=first.offsets + K + 1,
            tiles=first.tiles + -(-n_out // TILE),
            programs=first.programs + search.n_blocks * shares,
            arranging=first.arranging + K * -(-n_out // BUCKETS),
        )
    return rows, first
