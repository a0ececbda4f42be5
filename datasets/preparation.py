"""Raw pairs of clouds into samples that a network can learn from, on the device where the clouds lie."""

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

Moving = tuple[Tensor, Tensor, np.ndarray]  # source (N, 3), target (M, 3), T_target_source (4, 4)


@dataclass(frozen=True)
class RawPair:
    """Two clouds as they were recorded, and the true motion between them."""

    name: str
    source: Tensor  # (N, 3) float32 or float64, metres
    target: Tensor  # (M, 3)
    T_target_source: np.ndarray  # (4, 4) float64


@dataclass(frozen=True)
class Sample:
    """A pair ready for the network."""

    name: str
    source: Tensor  # (N, 3) float64, `voxel` apart
    target: Tensor  # (M, 3)
    matches: Tensor  # (P, 2) int64, rows of source and target closer than the positive radius
    source_coarser: Sequence["Coarser"] = ()  # one for each scale but the first
    target_coarser: Sequence["Coarser"] = ()
    source_views: Sequence["View"] = ()
    target_views: Sequence["View"] = ()


@dataclass(frozen=True)
class Coarser:
    """A cloud (N, 3) thinned to wider cells, as pcreg/features/fcgf.py thins it."""

    rows: Tensor  # (M,) int64, of the points that are left
    nearest: Tensor  # (N,) int64 into these: of each point of the cloud, the nearest


@dataclass(frozen=True)
class View:
    """A cloud (N, 3) thinned anew, to cells that begin elsewhere, and shaken anew."""

    points: Tensor  # (M, 3) float64, turned as the cloud
    nearest: Tensor  # (N,) int64 into these: of each point of the cloud, the nearest
    coarser: Sequence[Coarser]  # of these points


@dataclass(frozen=True)
class Preparation:
    """Augment pairs, thin their clouds to one point per voxel, and find the points that match.

    Clouds are thinned before they are turned, in their sensors' frames, as in use: points that were
    thinned before to the same voxels stay as they are.
    """

    voxel: float  # metres
    augment: Augmentation
    positive_radius: float  # metres (FCGF: 1.5 voxels)
    maximum_points: int = 40_000  # of a cloud; larger ones are subsampled
    snap: bool = False  # for a network on voxels: one point per voxel also after the cloud was turned
    scales: Sequence[float] = (1.0,)  # of the voxel size, at which the network sees each cloud
    views: int = 0  # of each cloud besides, for the teacher of pcreg/training/distillation.py

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
        thinned = self._thinned(reduced, rng)
        raw, kept = ([*zip(*(each[:2] for each in some), strict=True)] for some in (reduced, thinned))
        coarser = [self._coarser(clouds) for clouds in kept]
        views = [self._views(*clouds, rng) for clouds in zip(raw, kept, strict=True)]
        moved, views = self._moved(thinned, views, rng)
        if self.snap:
            moved = self._thinned(moved, rng)
        sources, targets, motions = zip(*moved, strict=True)
        aligned = [
            transform(torch.from_numpy(T).to(cloud), cloud) for T, cloud in zip(motions, sources, strict=True)
        ]
        matches = matching_rows(aligned, targets, self.positive_radius)
        names = [pair.name for pair in pairs]
        return [
            Sample(*each) for each in zip(names, sources, targets, matches, *coarser, *views, strict=True)
        ]

    def _views(
        self, raw: Sequence[Tensor], clouds: Sequence[Tensor], rng: np.random.Generator
    ) -> list[list[View]]:
        """Of each `raw` cloud, of which `clouds` (N, 3) are the first thinning, the others."""
        found: list[list[View]] = [[] for _ in raw]
        for _ in range(self.views):
            origins = torch.from_numpy(rng.uniform(0, self.voxel, (len(raw), 3))).to(raw[0].device)
            rows = rows_kept(raw, self.voxel, origins)
            left = [cloud[kept] for cloud, kept in zip(raw, rows, strict=True)]
            nearest = nearest_rows(clouds, left, 1.001 * 3**0.5 * self.voxel)
            for each, *view in zip(found, left, nearest, self._coarser(left), strict=True):
                each.append(View(*view))
        return found

    def _moved(
        self, pairs: list[Moving], views: list[list[list[View]]], rng: np.random.Generator
    ) -> tuple[list[Moving], list[list[list[View]]]]:
        """The pairs turned and shaken, and with them the views of each side."""
        moved: list[Moving] = []
        moved_views: list[list[list[View]]] = [[], []]
        for (*clouds, T), *own in zip(pairs, *views, strict=True):
            parts = [
                [cloud, *(view.points for view in some)] for cloud, some in zip(clouds, own, strict=True)
            ]
            *sides, T = self.augment.move(*(torch.cat(some) for some in parts), T, rng)
            whole = []
            for side, some, seen, kept in zip(sides, parts, own, moved_views, strict=True):
                cloud, *others = side.split([len(part) for part in some])
                whole.append(cloud)
                kept.append([replace(view, points=each) for view, each in zip(seen, others, strict=True)])
            moved.append((*whole, T))
        return moved, moved_views

    def _thinned(self, pairs: list[Moving], rng: np.random.Generator) -> list[Moving]:
        sources, targets, motions = zip(*pairs, strict=True)
        return list(zip(self._thin(sources, rng), self._thin(targets, rng), motions, strict=True))

    def _thin(self, clouds: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
        """One point per cell floor(p / voxel) of each cloud, as pcreg.geometry.voxel_grid.voxel_downsample,
        and not too many.
        """
        rows = rows_kept(clouds, self.voxel)
        return [self._limited(cloud[kept], rng) for cloud, kept in zip(clouds, rows, strict=True)]

    def _coarser(self, clouds: Sequence[Tensor]) -> list[list[Coarser]]:
        """For each cloud what is left of it at each scale but the first."""
        found: list[list[Coarser]] = [[] for _ in clouds]
        for scale in self.scales[1:]:
            rows = rows_kept(clouds, scale * self.voxel)
            left = [cloud[kept] for cloud, kept in zip(clouds, rows, strict=True)]
            # No further than across the cell that both are in.
            nearest = nearest_rows(clouds, left, 1.001 * 3**0.5 * scale * self.voxel)
            for each, kept, near in zip(found, rows, nearest, strict=True):
                each.append(Coarser(kept, near))
        return found

    def _limited(self, points: Tensor, rng: np.random.Generator) -> Tensor:
        if len(points) <= self.maximum_points:
            return points
        rows = np.sort(rng.choice(len(points), self.maximum_points, replace=False))
        return points[torch.from_numpy(rows).to(points.device)]


def rows_kept(clouds: Sequence[Tensor], voxel: float, origins: Tensor | None = None) -> list[Tensor]:
    """Of each cloud (N, 3) the rows (M,) int64 of one point per cell.

    Cells are counted from the cloud's origin, or from `origins` (B, 3) float64.
    """
    points, lengths = _jagged(clouds)
    if origins is None:
        origins = torch.zeros(len(clouds), 3, dtype=torch.float64, device=points.device)
    rows = grid_sample(points, lengths, voxel, origins)
    cloud = cloud_of_rows(lengths)[rows]
    local = rows - (torch.cumsum(lengths, 0) - lengths)[cloud]
    return list(local.split(torch.bincount(cloud, minlength=len(clouds)).tolist()))


def nearest_rows(clouds: Sequence[Tensor], others: Sequence[Tensor], reach: float) -> list[Tensor]:
    """For each cloud (N, 3) the rows (N,) int64 of the nearest of its others (M, 3), all within `reach`."""
    (points, lengths), (among, other_lengths) = _jagged(clouds), _jagged(others)
    i, j = radius_search(points, among, lengths, other_lengths, reach)
    away = (points[i] - among[j]).square().sum(1)
    least = away.new_full((len(points),), torch.inf).scatter_reduce(0, i, away, "amin")
    best = away == least[i]
    row = j.new_full((len(points),), len(among)).scatter_reduce(0, i[best], j[best], "amin")
    first = torch.cumsum(other_lengths, 0) - other_lengths
    return list((row - first[cloud_of_rows(lengths)]).split([len(cloud) for cloud in clouds]))


def matching_rows(sources: Sequence[Tensor], targets: Sequence[Tensor], radius: float) -> list[Tensor]:
    """For each source (N, 3) and target (M, 3): all (P, 2) int64 rows no more than `radius` apart."""
    (source, source_lengths), (target, target_lengths) = _jagged(sources), _jagged(targets)
    i, j = radius_search(source, target, source_lengths, target_lengths, radius)
    cloud = cloud_of_rows(source_lengths)[i]
    first = [torch.cumsum(lengths, 0) - lengths for lengths in (source_lengths, target_lengths)]
    local = torch.stack([i - first[0][cloud], j - first[1][cloud]], 1)
    return list(local.split(torch.bincount(cloud, minlength=len(sources)).tolist()))


def _jagged(clouds: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    points = torch.cat(list(clouds))
    return points, torch.tensor([len(cloud) for cloud in clouds], device=points.device)
