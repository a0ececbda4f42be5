"""Preparation of training samples from raw pairs, on the device of the clouds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcreg.arrays import scatter_min
from pcreg.datasets.augment import Augmentation
from pcreg.datasets.jagged import Jagged
from pcreg.features.fcgf import check_scales
from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.neighbors import radius_search
from pcreg.runtime.errors import InputError


@dataclass(frozen=True)
class RawPair:
    """Two clouds as recorded, and the true motion between them."""

    name: str
    source: Tensor  # (N, 3) float32 or float64, metres
    target: Tensor  # (M, 3)
    T_target_source: np.ndarray  # (4, 4) float64


@dataclass(frozen=True)
class Downsampled:
    """Rows of a cloud (N, 3) that a coarser grid keeps, as in models/inference.py."""

    rows: Tensor  # (M,) int64 into the cloud
    nearest: Tensor  # (N,) int64 into `rows`: the kept point nearest to each point of the cloud


@dataclass(frozen=True)
class Sample:
    """A pair ready for the network."""

    name: str
    source: Tensor  # (N, 3) float64, one point per voxel
    target: Tensor  # (M, 3)
    matches: Tensor  # (P, 2) int64, rows of source and target closer than the positive radius
    source_coarser: Sequence[Downsampled] = ()  # one for each scale but the first
    target_coarser: Sequence[Downsampled] = ()


@dataclass(frozen=True)
class Preparation:
    """Augment pairs, downsample their clouds to one point per voxel, and find the points that match.

    Downsampling comes before rotation, in the sensor's frame, as at inference. A cloud that has one point per
    voxel already is not changed by it.
    """

    voxel: float  # metres
    augment: Augmentation
    positive_radius: float  # metres (FCGF: 1.5 voxels)
    maximum_points: int = 40_000  # of a cloud; larger ones are subsampled at random
    snap: bool = False  # for a network on voxels: downsample again after the rotation
    scales: Sequence[float] = (1.0,)  # voxel sizes at which the network sees each cloud, in units of `voxel`

    def __post_init__(self):
        scales = check_scales(self.scales)
        if self.snap and len(scales) > 1:
            raise InputError(f"scales={list(scales)}: model.snap=true allows one scale; give scales=[1]")

    def __call__(self, pairs: list[RawPair], rng: np.random.Generator) -> list[Sample]:
        """Prepare pairs; each step takes all clouds at once, the sources and then the targets."""
        raw = Jagged.of([*(pair.source for pair in pairs), *(pair.target for pair in pairs)])
        raw = Jagged(raw.points.double(), raw.sizes)
        raw, motions = self.augment.reduce(raw, [pair.T_target_source for pair in pairs], rng)
        clouds = self._downsample(raw, rng)
        coarser = self._coarser(clouds)
        moved, motions = self.augment.move(clouds, motions, rng)
        clouds = self._downsample(moved, rng) if self.snap else moved
        split, count = clouds.split(), len(pairs)
        sources, targets = split[:count], split[count:]
        matches = matching_rows(Jagged.of(sources).moved(motions), Jagged.of(targets), self.positive_radius)
        columns = [pair.name for pair in pairs], sources, targets, matches, coarser[:count], coarser[count:]
        return [Sample(*each) for each in zip(*columns, strict=True)]

    def _downsample(self, clouds: Jagged, rng: np.random.Generator) -> Jagged:
        """One point per voxel of each cloud, as pcreg/geometry/voxel_grid.py, at most `maximum_points`."""
        kept = []
        for cloud in clouds.take(_sampled(clouds, self.voxel)).split():
            if len(cloud) > self.maximum_points:
                rows = np.sort(rng.choice(len(cloud), self.maximum_points, replace=False))
                cloud = cloud[torch.from_numpy(rows).to(cloud.device)]
            kept.append(cloud)
        return Jagged.of(kept)

    def _coarser(self, clouds: Jagged) -> list[list[Downsampled]]:
        """For each cloud: the rows that each scale but the first keeps."""
        found: list[list[Downsampled]] = [[] for _ in clouds.sizes]
        for voxel in (scale * self.voxel for scale in self.scales[1:]):
            rows = _sampled(clouds, voxel)
            columns = clouds.rows_of_clouds(rows), _nearest_in_voxel(clouds, clouds.take(rows), voxel)
            for each, *downsampled in zip(found, *columns, strict=True):
                each.append(Downsampled(*downsampled))
        return found


def scaled_clouds(
    clouds: Sequence[Tensor], coarser: Sequence[Sequence[Downsampled]], scales: Sequence[float]
) -> tuple[list[Tensor], Tensor]:
    """The B clouds (N_b, 3) at the first scale, which is 1, then at the second, and so on.

    A network has no unit of length, so a cloud with one point per `scale` voxels, divided by `scale`, is
    simply another cloud of the batch: one pass computes all scales. `coarser` has the rows of each cloud at
    each further scale. Returns all clouds, and rows (N, scales) int64 into their joined points: the nearest
    point at each scale to each of the N points of the first B clouds.
    """
    every, start = list(clouds), sum(map(len, clouds))
    columns = [torch.arange(start, device=clouds[0].device)]
    for number, scale in enumerate(scales[1:]):
        column = []
        for cloud, left in zip(clouds, (each[number] for each in coarser), strict=True):
            every.append(cloud[left.rows] / scale)
            column.append(start + left.nearest)
            start += len(left.rows)
        columns.append(torch.cat(column))
    return every, torch.stack(columns, 1)


def _nearest_in_voxel(clouds: Jagged, sampled: Jagged, voxel: float) -> list[Tensor]:
    """Row (N,) int64, for each cloud, of each point's nearest `sampled` point."""
    radius = 1.001 * 3**0.5 * voxel
    i, j = radius_search(clouds.points, sampled.points, clouds.lengths, sampled.lengths, radius)
    squared = (clouds.points[i] - sampled.points[j]).square().sum(1)
    nearest = squared == scatter_min(squared, i, len(clouds.points))[i]
    row = j.new_full((len(clouds.points),), len(sampled.points))
    row = row.scatter_reduce(0, i[nearest], j[nearest], "amin")
    return list((row - sampled.first[clouds.cloud]).split(clouds.sizes))


def matching_rows(sources: Jagged, targets: Jagged, radius: float) -> list[Tensor]:
    """Rows (P, 2) int64, for each source and target, of all points within `radius`."""
    i, j = radius_search(sources.points, targets.points, sources.lengths, targets.lengths, radius)
    cloud = sources.cloud[i]
    local = torch.stack([i - sources.first[cloud], j - targets.first[cloud]], 1)
    return list(local.split(counts_of_sorted(cloud, len(sources.sizes)).tolist()))


def _sampled(clouds: Jagged, voxel: float) -> Tensor:
    """Rows (M,) int64 of one point per voxel of each cloud, in grids that begin at the clouds' origins."""
    origins = torch.zeros(len(clouds.sizes), 3, dtype=torch.float64, device=clouds.points.device)
    return grid_sample(clouds.points, clouds.lengths, voxel, origins)
