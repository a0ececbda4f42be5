"""All levels of points and all triplets that a network needs of a batch.

They depend on coordinates alone, so they are built once per batch before any feature is computed,
in a loader worker or on the GPU, and shared by every layer and by the backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from pcreg.kernels.cells import cells_of, cloud_of_rows
from pcreg.kernels.conv import arrange
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.normals import surface_normals
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig
from pcreg.kernels.row_groups import RowGroups
from pcreg.kernels.stencil import native_counts, native_triplets, voxel_triplets
from pcreg.kernels.transfer import moved
from pcreg.kernels.triplets import Triplets


@dataclass(frozen=True)
class Pyramid:
    """levels[0] is the batch itself; levels[l + 1] a grid sample of levels[l]."""

    levels: list[PointBatch]
    stem: torch.Tensor  # (K, N) int32: of level 0, the points in each cell of the first layer's kernels
    same: list[Triplets]  # same[l]: level l onto itself
    down: list[Triplets]  # down[l]: level l onto level l + 1; transposed, back up
    cloud_groups: RowGroups  # clouds, such as all sources and all targets, whose norms training keeps apart
    row_groups: list[RowGroups]  # of each level, the points of these
    normals: list[torch.Tensor] | None = None  # (N, 3) of each level's points, for kernel="ppf"

    @staticmethod
    def build(batch: PointBatch, geometry: PyramidConfig, groups: Sequence[int] | None = None) -> "Pyramid":
        """Sample and search `batch`, where it lies.

        `groups` are the numbers of clouds of its groups; None: all are one.
        """
        if batch.points.is_cuda:
            return search_at_once(batch, geometry, groups)
        levels, rows = sample_levels(batch, geometry)
        grouped = _grouped(levels, groups)
        normals = _normals(batch, rows, geometry)

        def search(out_level: int, in_level: int, kernel_size: int = KERNEL_SIZE) -> Triplets:
            out, points = levels[out_level], levels[in_level]
            if geometry.snap:
                return _voxel_search(out, points, out_level, in_level, kernel_size, geometry)
            size, radius = geometry.size_and_radius(in_level, kernel_size)
            both = normals and (normals[out_level], normals[in_level])
            return native_triplets(
                out.points, points.points, out.lengths, points.lengths, size, kernel_size, radius, both
            )

        same = [search(level, level) for level in range(geometry.n_levels)]
        down = [search(level + 1, level) for level in range(geometry.n_levels - 1)]
        if geometry.snap:
            stem = search(0, 0, geometry.stem_kernel_size).counts()
        else:
            size, radius = geometry.size_and_radius(0, geometry.stem_kernel_size)
            own = normals and normals[0]
            stem = native_counts(batch.points, batch.lengths, size, geometry.stem_kernel_size, radius, own)
        return Pyramid(levels, stem, same, down, *grouped, normals)._arranged()

    def groups(self, level: int) -> list[PointBatch]:
        """The points of a level, each group of clouds by itself."""
        batch = self.levels[level]
        points, lengths = self.row_groups[level].split(batch.points), self.cloud_groups.split(batch.lengths)
        if batch.viewpoints is None:
            return list(map(PointBatch, points, lengths))
        return list(map(PointBatch, points, lengths, self.row_groups[level].split(batch.viewpoints)))

    def to(self, device: torch.device | str) -> "Pyramid":
        levels = [level.to(device) for level in self.levels]
        same, down = ([triplets.to(device) for triplets in some] for some in (self.same, self.down))
        normals = self.normals and [each.to(device) for each in self.normals]
        stem, groups = self.stem.to(device), (self.cloud_groups, self.row_groups)
        return Pyramid(levels, stem, same, down, *groups, normals)._arranged()

    def _arranged(self) -> "Pyramid":
        """Derive here what the layers would otherwise wait for: the decoder's triplets, and arrangements.

        Half precision may take others on a GPU and then derives them in the first forward pass.
        """
        for triplets in (*self.same, *self.down, *(down.transposed for down in self.down)):
            arrange(triplets, torch.float32)
        return self


def search_at_once(
    batch: PointBatch, geometry: PyramidConfig, groups: Sequence[int] | None = None
) -> Pyramid:
    """The pyramid by kernels for a GPU, which find the triplets of all layers together.

    One sort of a level serves to sample it and to search it. The device is waited for once per level, to
    learn its size, and once for all triplets.
    """
    from pcreg.kernels.triton.search.index import CellIndex, cloud_numbers
    from pcreg.kernels.triton.search.query import Search
    from pcreg.kernels.triton.search.triplets import count_triplets, find_triplets

    n_clouds, n_levels = len(batch.lengths), geometry.n_levels
    sizes = [geometry.voxel * 2**level for level in range(n_levels + 1)]
    frames = _frames(batch, sizes, geometry)
    levels, clouds = (
        [replace(batch, points=batch.points.contiguous())],
        [cloud_numbers(batch.lengths, len(batch))],
    )
    bounds = torch.arange(n_clouds + 1, dtype=torch.int32, device=batch.points.device)
    rows = []  # of the finer level, those that a level consists of
    coarse, own = [], []  # of each level, the points in cells of the next level and of its own
    for level in range(n_levels):
        points, cloud = levels[level].points, clouds[level]
        if level + 1 < n_levels or not geometry.snap:
            coarse.append(CellIndex.build(points, cloud, frames[level + 1], sizes[level + 1], n_clouds))
        if geometry.snap:
            own.append(CellIndex.build(points, cloud, frames[level], sizes[level], n_clouds))
        if level + 1 < n_levels:
            picked, points, cloud = coarse[level].representatives()
            levels.append(PointBatch(points, torch.diff(torch.searchsorted(cloud, bounds))))
            clouds.append(cloud)
            rows.append(picked)

    grouped = _grouped(levels, groups)
    indices = own if geometry.snap else coarse
    normals = _normals(levels[0], rows, geometry)

    def search(out_level: int, in_level: int, kernel_size: int = KERNEL_SIZE) -> Search:
        size, radius = geometry.size_and_radius(min(out_level, in_level), kernel_size)
        return Search(
            indices[in_level],
            levels[out_level].points,
            clouds[out_level],
            size,
            kernel_size,
            radius=None if geometry.snap else radius,
            stride=1 if out_level == in_level else 2,
            mirrored=out_level < in_level,
            normals=normals and (normals[out_level], normals[in_level]),
            symmetric=out_level == in_level,
        )

    searches = [search(level, level) for level in range(n_levels)]
    searches += [search(level + 1, level) for level in range(n_levels - 1)]
    searches += [search(level, level + 1) for level in range(n_levels - 1)]
    stem = count_triplets(search(0, 0, geometry.stem_kernel_size))
    found = find_triplets(searches)
    same, down, up = found[:n_levels], found[n_levels : 2 * n_levels - 1], found[2 * n_levels - 1 :]
    for there, back in zip(down, up, strict=True):
        there.pair_with(back)
    return Pyramid(levels, stem, same, down, *grouped, normals)


def _grouped(levels: list[PointBatch], groups: Sequence[int] | None) -> tuple[RowGroups, list[RowGroups]]:
    """The fields `cloud_groups` and `row_groups`. With several groups the device is waited for."""
    if groups is None:
        return RowGroups((len(levels[0].lengths),)), [RowGroups((len(level),)) for level in levels]
    clouds = RowGroups(tuple(groups))
    lengths = torch.stack([level.lengths for level in levels], 1)  # (B, levels)
    rows = torch.stack([part.sum(0) for part in clouds.split(lengths)], 1)
    return clouds, [RowGroups(tuple(sizes)) for sizes in rows.tolist()]


def _frames(batch: PointBatch, sizes: list[float], geometry: PyramidConfig) -> torch.Tensor:
    """Frames (len(sizes), 7) of pcreg.kernels.triton.search.index: the same corners, cells of these sizes."""
    points = batch.points.double()
    upper = points.amax(0) if len(batch) else points.new_zeros(3)
    lower = torch.full_like(upper, -geometry.voxel / 2)
    edges = moved(torch.tensor(sizes, dtype=torch.float64), points.device)
    return torch.cat([torch.cat([lower, upper]).expand(len(sizes), 6), edges[:, None]], 1)


def sample_levels(batch: PointBatch, geometry: PyramidConfig) -> tuple[list[PointBatch], list[torch.Tensor]]:
    """The levels, and of each but the first the rows of the finer one that it consists of.

    Cells of all levels are nested: a coarse cell is eight fine ones, counted from one origin.
    """
    origin = _origin(batch, geometry)
    levels, rows = [batch], []
    for level in range(1, geometry.n_levels):
        finer = levels[-1]
        rows.append(grid_sample(finer.points, finer.lengths, geometry.voxel * 2**level, origin))
        levels.append(finer.select(rows[-1]))
    return levels, rows


def _normals(
    batch: PointBatch, rows: list[torch.Tensor], geometry: PyramidConfig
) -> list[torch.Tensor] | None:
    """Normals (N, 3) of the points of each level, for kernel=ppf.

    They are those of the finest level: `rows` are the points that each further one took from that before.
    """
    if geometry.kernel == "grid":
        return None
    if batch.viewpoints is None:
        raise ValueError("kernel=ppf needs to know from where each point was seen: give the batch viewpoints")
    normals = [surface_normals(batch.points, batch.lengths, batch.viewpoints, geometry.normal_radius)]
    for picked in rows:
        normals.append(normals[-1][picked])
    return normals


def _origin(batch: PointBatch, geometry: PyramidConfig) -> torch.Tensor:
    """Half a voxel below each cloud's lower corner, which is zero: (B, 3)."""
    shape = (len(batch.lengths), 3)
    return torch.full(shape, -geometry.voxel / 2, dtype=torch.float64, device=batch.points.device)


def _voxel_search(out, points, out_level, in_level, kernel_size, geometry) -> Triplets:
    point_cells = _cells(points, in_level, geometry)
    return voxel_triplets(
        point_cells if out is points else _cells(out, out_level, geometry),
        point_cells,
        out.lengths,
        points.lengths,
        stride=2 ** (out_level - in_level),
        kernel_size=kernel_size,
    )


def _cells(batch: PointBatch, level: int, geometry: PyramidConfig) -> torch.Tensor:
    size = geometry.voxel * 2**level
    return cells_of(batch.points, cloud_of_rows(batch.lengths), _origin(batch, geometry), size)
