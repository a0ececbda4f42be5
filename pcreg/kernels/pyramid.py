"""All levels of points and all triplets that a network needs for a batch.

Levels and triplets depend on coordinates alone. They are built once per batch, on its device, before any
feature is computed, and shared by every layer and by the backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.cpu.pyramid import Unsorted, search_levels
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.point_batch import PointBatch, RowGroups
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig
from pcreg.kernels.transfer import to_device
from pcreg.kernels.triplets import Symmetry, Triplets


@dataclass(frozen=True)
class Pyramid:
    """levels[0] is the batch itself; levels[l + 1] a grid sample of levels[l]."""

    levels: list[PointBatch]
    stem: Tensor  # (K, N) int32: number of points in each cell of the first layer's kernels, on level 0
    same: list[Triplets]  # same[l]: level l onto itself
    down: list[Triplets]  # down[l]: level l onto level l + 1; transposed, back up
    cloud_groups: RowGroups  # clouds normalised separately in training, such as sources and targets
    row_groups: list[RowGroups]  # for each level, the rows of these groups of clouds

    @staticmethod
    def build(batch: PointBatch, geometry: PyramidConfig, groups: Sequence[int] | None = None) -> "Pyramid":
        """Sample and search a batch, on its device.

        Args:
            batch: B clouds, with viewpoints for point-pair kernels.
            geometry: Levels and neighbourhoods.
            groups: Numbers of clouds in consecutive groups; by default all clouds are one group.

        Raises:
            ValueError: Viewpoints are missing, or cells cannot be numbered in 62 bits.
        """
        if geometry.kernel == "ppf" and batch.viewpoints is None:
            raise ValueError("kernel=ppf needs the place from where each point was seen: give viewpoints")
        if batch.points.is_cuda:
            return search_at_once(batch, geometry, groups)
        levels, rows = sample_levels(batch, geometry)
        places = [_places(points.points, level, geometry).numpy() for level, points in enumerate(levels)]
        lengths = [points.lengths.numpy() for points in levels]
        viewpoints, symmetric = None, Symmetry.OPPOSITE
        if geometry.kernel == "ppf":
            viewpoints, symmetric = batch.viewpoints.numpy(), Symmetry.SWAPPED_HEIGHTS
        taken = [each.numpy() for each in rows]
        stem, within, onto = search_levels(places, lengths, taken, viewpoints, geometry)

        def triplets(unsorted: Unsorted, out: int, level: int, symmetry: Symmetry) -> Triplets:
            ends = len(levels[out]), len(levels[level])
            return Triplets.from_unsorted(*map(torch.from_numpy, unsorted), *ends, KERNEL_SIZE**3, symmetry)

        same = [triplets(each, level, level, symmetric) for level, each in enumerate(within)]
        down = [triplets(each, level + 1, level, Symmetry.NONE) for level, each in enumerate(onto)]
        return Pyramid(levels, torch.from_numpy(stem), same, down, *_grouped(levels, groups))

    @property
    def triplets(self) -> list[Triplets]:
        """All triplets, in the order of `ends_of_triplets`."""
        return [*self.same, *self.down, *(triplets.transposed for triplets in self.down)]

    def groups(self) -> list[PointBatch]:
        """Split the finest level into one batch per group of clouds, without viewpoints."""
        points = self.row_groups[0].split(self.levels[0].points)
        return list(map(PointBatch, points, self.cloud_groups.split(self.levels[0].lengths)))


def ends_of_triplets(n_levels: int) -> list[tuple[int, int]]:
    """Pairs of output and input level: each level onto itself, then down, then back up."""
    down = [(level + 1, level) for level in range(n_levels - 1)]
    return [*((level, level) for level in range(n_levels)), *down, *((into, out) for out, into in down)]


def same_and_down(triplets: list[Triplets], n_levels: int) -> tuple[list[Triplets], list[Triplets]]:
    """Fields `same` and `down` of a Pyramid from triplets in the order of `ends_of_triplets`."""
    same, down, up = triplets[:n_levels], triplets[n_levels : 2 * n_levels - 1], triplets[2 * n_levels - 1 :]
    for there, back in zip(down, up, strict=True):
        there.pair_with(back)
    return same, down


def search_at_once(
    batch: PointBatch, geometry: PyramidConfig, groups: Sequence[int] | None = None
) -> Pyramid:
    """Build a pyramid on a GPU, where the triplets of all layers are found together.

    Each level is sorted once, for sampling and for searching. The host waits for the size of each sampled
    level, for the numbers of all triplets, and for the number of pairs that normals need.
    """
    from pcreg.kernels.triton.plane_fit import surface_normals
    from pcreg.kernels.triton.search.index import CellIndex, cloud_numbers
    from pcreg.kernels.triton.search.query import Search
    from pcreg.kernels.triton.search.run import count_triplets, find_triplets

    n_clouds, n_levels = len(batch.lengths), geometry.n_levels
    sizes = [geometry.voxel * 2 ** (level + 1) for level in range(n_levels)]
    frames = _frames(batch, sizes, -geometry.voxel / 2)
    levels = [replace(batch, points=batch.points.contiguous())]
    clouds = [cloud_numbers(batch.lengths, len(batch))]
    rows, indices = [], []  # of each level: the rows that form the next level, and the index of its points
    for level, size in enumerate(sizes):
        points, cloud = levels[level].points, clouds[level]
        indices.append(CellIndex.build(points, cloud, frames[level], size, n_clouds))
        if level + 1 < n_levels:
            picked, points, cloud = indices[level].representatives()
            levels.append(PointBatch(points, counts_of_sorted(cloud, n_clouds)))
            clouds.append(cloud)
            rows.append(picked)

    normals, places = None, [_places(points.points, level, geometry) for level, points in enumerate(levels)]
    if geometry.kernel == "ppf":
        radius = geometry.normal_radius
        near = Search(indices[0], places[0], clouds[0], radius, 1, radius, symmetric=True)
        (pairs,) = find_triplets([near])
        normals = [surface_normals(levels[0].points, batch.viewpoints, pairs.i.long(), pairs.j.long())]
        for picked in rows:
            normals.append(normals[-1][picked])
    if geometry.snap:  # the sorted order stays; coordinates become those of voxels
        edges = [2.0 ** (level + 1) for level in range(n_levels)]
        frames = _frames(PointBatch(places[0], batch.lengths), edges, 0.0)
        snapped = zip(indices, places, frames, edges, strict=True)
        indices = [replace(own, rows=rows, frame=frame, edge=edge) for own, rows, frame, edge in snapped]

    def search(out: int, level: int, kernel_size: int = KERNEL_SIZE) -> Search:
        size, radius = geometry.size_and_radius(min(out, level), kernel_size)
        kind = {"cube": geometry.snap, "mirrored": out < level, "symmetric": out == level}
        both = normals and (normals[out], normals[level])
        centres = places[out], clouds[out]
        return Search(indices[level], *centres, size, kernel_size, radius, normals=both, **kind)

    searches = [search(*ends) for ends in ends_of_triplets(n_levels)]
    stem = count_triplets(search(0, 0, geometry.stem_kernel_size))
    found = same_and_down(find_triplets(searches), n_levels)
    return Pyramid(levels, stem, *found, *_grouped(levels, groups))


def sample_levels(batch: PointBatch, geometry: PyramidConfig) -> tuple[list[PointBatch], list[Tensor]]:
    """Return the levels, and for each but the first its rows in the level before.

    Cells of all levels have one origin, and are nested: a coarse cell consists of eight fine ones.
    """
    shape = (len(batch.lengths), 3)  # half a voxel below the lower corners of clouds, which are zero
    origin = torch.full(shape, -geometry.voxel / 2, dtype=torch.float64, device=batch.points.device)
    levels, rows = [batch], []
    for level in range(1, geometry.n_levels):
        points, lengths = levels[-1].points, levels[-1].lengths
        picked = grid_sample(points, lengths, geometry.voxel * 2**level, origin)
        cloud = torch.repeat_interleave(lengths)[picked]
        levels.append(PointBatch(points[picked], counts_of_sorted(cloud, len(lengths))))
        rows.append(picked)
    return levels, rows


def _places(points: Tensor, level: int, geometry: PyramidConfig) -> Tensor:
    """Coordinates (N, 3) for searching a level: with `snap`, the corners of the points' cells, in voxels."""
    if not geometry.snap:
        return points
    size = geometry.voxel * 2**level
    return (torch.floor((points.double() + geometry.voxel / 2) / size) * 2**level).to(points.dtype)


def _frames(batch: PointBatch, edges: list[float], lower: float) -> Tensor:
    """Frames (levels, 7) of CellIndex around all points, with one lower corner and cells of these edges."""
    points = batch.points.double()
    upper = points.amax(0) if len(batch) else points.new_zeros(3)
    own = to_device(torch.tensor(edges, dtype=torch.float64), points.device)
    corners = torch.cat([torch.full_like(upper, lower), upper])
    return torch.cat([corners.expand(len(edges), 6), own[:, None]], 1)


def _grouped(levels: list[PointBatch], groups: Sequence[int] | None) -> tuple[RowGroups, list[RowGroups]]:
    """Return the fields `cloud_groups` and `row_groups`; with `groups` the host waits for the device."""
    if groups is None:
        return RowGroups((len(levels[0].lengths),)), [RowGroups((len(level),)) for level in levels]
    clouds = RowGroups(tuple(groups))
    lengths = torch.stack([level.lengths for level in levels], 1)  # (B, levels)
    rows = torch.stack([part.sum(0) for part in clouds.split(lengths)], 1)
    return clouds, [RowGroups(tuple(sizes)) for sizes in rows.tolist()]
