"""Raw pairs of clouds into training samples, on the device where the clouds lie."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.augment import Augmentation
from pcreg.geometry.se3 import transform
from pcreg.kernels.cells import cloud_of_rows
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.neighbors import radius_search
from pcreg.runtime.errors import InputError


@dataclass(frozen=True)
class RawPair:
    """Two clouds as they were recorded, and the true motion between them."""

    name: str
    source: Tensor  # (N, 3) float32 or float64, metres
    target: Tensor  # (M, 3)
    T_target_source: np.ndarray  # (4, 4) float64


@dataclass(frozen=True)
class Downsampled:
    """The rows of a cloud (N, 3) that a wider voxel grid keeps, as in pcreg/features/fcgf.py."""

    rows: Tensor  # (M,) int64 into the cloud
    nearest: Tensor  # (N,) int64 into `rows`: the kept point nearest to each point of the cloud


@dataclass(frozen=True)
class TeacherView:
    """A second downsampling of the scan behind a cloud (N, 3), for pcreg/training/distillation.py.

    Its voxel grid has a random origin, so it keeps other points. It is rotated with the cloud and has
    jitter of its own.
    """

    points: Tensor  # (M, 3) float64
    nearest: Tensor  # (N,) int64 into `points`: the point nearest to each point of the cloud
    coarser: Sequence[Downsampled]  # of `points`, one for each scale but the first


@dataclass(frozen=True)
class Sample:
    """A pair ready for the network."""

    name: str
    source: Tensor  # (N, 3) float64, one point per voxel
    target: Tensor  # (M, 3)
    matches: Tensor  # (P, 2) int64, rows of source and target closer than the positive radius
    source_coarser: Sequence[Downsampled] = ()  # one for each scale but the first
    target_coarser: Sequence[Downsampled] = ()
    source_views: Sequence[TeacherView] = ()
    target_views: Sequence[TeacherView] = ()


@dataclass(frozen=True)
class Preparation:
    """Augment pairs, downsample their clouds to one point per voxel, and find the points that match.

    Downsampling comes before rotation, in the sensor's frame, as at inference: a cloud that has one point
    in each of these voxels already stays as it is.
    """

    voxel: float  # metres
    augment: Augmentation
    positive_radius: float  # metres (FCGF: 1.5 voxels)
    maximum_points: int = 40_000  # of a cloud; larger ones are subsampled at random
    snap: bool = False  # for a network on voxels: downsample again after the rotation
    scales: Sequence[float] = (1.0,)  # voxel sizes at which the network sees each cloud, in units of `voxel`
    views: int = 0  # TeacherViews of each cloud

    def __post_init__(self):
        scales = list(self.scales)
        if scales[:1] != [1] or not all(1 < scale < np.inf for scale in scales[1:]):
            raise InputError(f"scales={scales}: give 1 first and then larger ones, such as [1, 1.4, 2]")
        if self.snap and len(scales) > 1:
            raise InputError(f"scales={scales}: a network with model.snap=true sees one; give scales=[1]")

    def __call__(self, pairs: list[RawPair], rng: np.random.Generator) -> list[Sample]:
        reduced = [
            self.augment.reduce(pair.source.double(), pair.target.double(), pair.T_target_source, rng)
            for pair in pairs
        ]
        *raw, motions = map(list, zip(*reduced, strict=True))  # raw: all sources, all targets
        clouds = [self._downsample(side, rng) for side in raw]
        coarser = [self._coarser(side) for side in clouds]
        views = [self._views(*sides, rng) for sides in zip(raw, clouds, strict=True)]
        for pair in range(len(pairs)):  # in place: a cloud and its views move as one
            parts = [[clouds[s][pair], *(view.points for view in views[s][pair])] for s in (0, 1)]
            *moved, motions[pair] = self.augment.move(*map(torch.cat, parts), motions[pair], rng)
            for s in (0, 1):
                clouds[s][pair], *others = moved[s].split([len(part) for part in parts[s]])
                views[s][pair] = [
                    replace(view, points=points) for view, points in zip(views[s][pair], others, strict=True)
                ]
        if self.snap:
            clouds = [self._downsample(side, rng) for side in clouds]
        sources, targets = clouds
        aligned = [
            transform(torch.from_numpy(T).to(cloud), cloud) for T, cloud in zip(motions, sources, strict=True)
        ]
        matches = matching_rows(aligned, targets, self.positive_radius)
        names = [pair.name for pair in pairs]
        columns = names, sources, targets, matches, *coarser, *views
        return [Sample(*each) for each in zip(*columns, strict=True)]

    def _downsample(self, clouds: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
        """Of each cloud one point per voxel, as pcreg/geometry/voxel_grid.py; `maximum_points` of them."""
        sampled = []
        for cloud, rows in zip(clouds, sampled_rows(clouds, self.voxel), strict=True):
            if len(rows) > self.maximum_points:
                kept = np.sort(rng.choice(len(rows), self.maximum_points, replace=False))
                rows = rows[torch.from_numpy(kept).to(rows.device)]
            sampled.append(cloud[rows])
        return sampled

    def _coarser(self, clouds: Sequence[Tensor]) -> list[list[Downsampled]]:
        """Of each cloud what is left at each scale but the first."""
        found: list[list[Downsampled]] = [[] for _ in clouds]
        for voxel in (scale * self.voxel for scale in self.scales[1:]):
            rows = sampled_rows(clouds, voxel)
            left = [cloud[kept] for cloud, kept in zip(clouds, rows, strict=True)]
            for each, *downsampled in zip(found, rows, nearest_in_voxel(clouds, left, voxel), strict=True):
                each.append(Downsampled(*downsampled))
        return found

    def _views(
        self, raw: Sequence[Tensor], clouds: Sequence[Tensor], rng: np.random.Generator
    ) -> list[list[TeacherView]]:
        """The views of each cloud (N, 3), downsampled from its `raw` one."""
        found: list[list[TeacherView]] = [[] for _ in raw]
        for _ in range(self.views):
            origins = torch.from_numpy(rng.uniform(0, self.voxel, (len(raw), 3))).to(raw[0].device)
            rows = sampled_rows(raw, self.voxel, origins)
            left = [cloud[kept] for cloud, kept in zip(raw, rows, strict=True)]
            nearest = nearest_in_voxel(clouds, left, self.voxel)
            for each, *view in zip(found, left, nearest, self._coarser(left), strict=True):
                each.append(TeacherView(*view))
        return found


def scaled_clouds(
    clouds: Sequence[Tensor], coarser: Sequence[Sequence[Downsampled]], scales: Sequence[float]
) -> tuple[list[Tensor], Tensor]:
    """The B clouds (N_b, 3) at the first scale, which is 1, then at the second, and so on.

    The network knows no unit of length: a cloud with one point per `scale` voxels, divided by `scale`, is one
    more cloud of the batch. So one pass computes all scales, and norms see the points of all of them.
    `coarser` has what is left of each cloud at each further scale. Returns the clouds, and for each point of
    the first B the rows (N, scales) int64 that describe it: at each scale its nearest point, in all of them.
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


def sampled_rows(clouds: Sequence[Tensor], voxel: float, origins: Tensor | None = None) -> list[Tensor]:
    """Of each cloud (N, 3) the rows (M,) int64 of one point per voxel.

    The grids begin at the clouds' origins, or at `origins` (B, 3) float64.
    """
    points, lengths = _jagged(clouds)
    if origins is None:
        origins = torch.zeros(len(clouds), 3, dtype=torch.float64, device=points.device)
    rows = grid_sample(points, lengths, voxel, origins)
    cloud = cloud_of_rows(lengths)[rows]
    local = rows - (torch.cumsum(lengths, 0) - lengths)[cloud]
    return list(local.split(torch.bincount(cloud, minlength=len(clouds)).tolist()))


def nearest_in_voxel(clouds: Sequence[Tensor], sampled: Sequence[Tensor], voxel: float) -> list[Tensor]:
    """For each cloud (N, 3) the rows (N,) int64 of the nearest of its `sampled` points (M, 3), one per voxel.

    One lies in the voxel of each point, no further away than the voxel's diagonal.
    """
    (points, lengths), (among, sampled_lengths) = _jagged(clouds), _jagged(sampled)
    i, j = radius_search(points, among, lengths, sampled_lengths, 1.001 * 3**0.5 * voxel)
    squared = (points[i] - among[j]).square().sum(1)
    minimum = squared.new_full((len(points),), torch.inf).scatter_reduce(0, i, squared, "amin")
    nearest = squared == minimum[i]
    row = j.new_full((len(points),), len(among)).scatter_reduce(0, i[nearest], j[nearest], "amin")
    first = torch.cumsum(sampled_lengths, 0) - sampled_lengths
    return list((row - first[cloud_of_rows(lengths)]).split([len(cloud) for cloud in clouds]))


def matching_rows(sources: Sequence[Tensor], targets: Sequence[Tensor], radius: float) -> list[Tensor]:
    """For each source (N, 3) and target (M, 3): all (P, 2) int64 rows at most `radius` from each other."""
    (source, source_lengths), (target, target_lengths) = _jagged(sources), _jagged(targets)
    i, j = radius_search(source, target, source_lengths, target_lengths, radius)
    cloud = cloud_of_rows(source_lengths)[i]
    first = [torch.cumsum(lengths, 0) - lengths for lengths in (source_lengths, target_lengths)]
    local = torch.stack([i - first[0][cloud], j - first[1][cloud]], 1)
    return list(local.split(torch.bincount(cloud, minlength=len(sources)).tolist()))


def _jagged(clouds: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    points = torch.cat(list(clouds))
    return points, torch.tensor([len(cloud) for cloud in clouds], device=points.device)
