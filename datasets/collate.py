"""Pairs of clouds into training batches, in loader workers.

What a pair becomes depends on the seed, the epoch and the pair alone: not on the number of workers,
nor on where a resumed training began.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from datasets.augment import Augmentation
from kernels.neighbors import radius_search
from pcreg.batch import PointBatch
from pcreg.descriptors import thin
from pcreg.errors import InputError
from pcreg.geometry import transform
from pcreg.hierarchy import Geometry, Hierarchy, sample_levels
from pcreg.pair import PairDataset

MINIMUM_MATCHES = 32  # a pair with fewer has nothing to teach and is left out of its batch


@dataclass(frozen=True)
class Sample:
    """A pair ready for the network."""

    name: str
    source: np.ndarray  # (N, 3) float64, `voxel` apart
    target: np.ndarray  # (M, 3)
    matches: torch.Tensor  # (P, 2) int64, rows of source and target closer than the positive radius


@dataclass(frozen=True)
class TrainingBatch:
    """Several pairs: all sources in one hierarchy, all targets in another; or in points to build it of."""

    names: list[str]
    source: Hierarchy | PointBatch
    target: Hierarchy | PointBatch
    matches: torch.Tensor  # (P, 2) int64, rows of the whole batch
    left_out: list[str]  # pairs with too few matches
    geometry: Geometry

    def to(self, device: torch.device | str) -> "TrainingBatch":
        """On `device`, with its hierarchies."""
        source, target = (
            Hierarchy.build(clouds.to(device), self.geometry)
            if isinstance(clouds, PointBatch)
            else clouds.to(device)
            for clouds in (self.source, self.target)
        )
        return replace(self, source=source, target=target, matches=self.matches.to(device))


class TrainingPairs(Dataset):
    """Augmented, thinned and matched pairs of a data set, by (epoch, index)."""

    def __init__(
        self,
        pairs: PairDataset,
        voxel: float,
        augment: Augmentation,
        positive_radius: float,
        maximum_points: int = 40_000,
        seed: int = 0,
    ):
        """positive_radius in metres (FCGF: 1.5 voxels); clouds beyond maximum_points are subsampled."""
        if len(pairs.pairs) == 0:
            raise InputError("data: the training set has no pairs; check data.root and its options")
        self.pairs, self.voxel, self.augment = pairs, voxel, augment
        self.positive_radius, self.maximum_points, self.seed = positive_radius, maximum_points, seed

    def __len__(self) -> int:
        return len(self.pairs.pairs)

    def __getitem__(self, key: tuple[int, int]) -> Sample:
        epoch, index = key
        pair = self.pairs.pairs[index]
        rng = np.random.default_rng([self.seed, epoch, index])
        source, target = self.pairs.cloud(pair.source), self.pairs.cloud(pair.target)
        source, target, T_target_source = self.augment(source, target, pair.T_target_source, rng)
        source, target = self._thin(source, rng), self._thin(target, rng)
        matches = matching_rows(transform(T_target_source, source), target, self.positive_radius)
        return Sample(pair.name, source, target, matches)

    def _thin(self, points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rows = thin(points, self.voxel)
        if len(rows) > self.maximum_points:
            rows = np.sort(rng.choice(rows, self.maximum_points, replace=False))
        return points[rows]


def matching_rows(source: np.ndarray, target: np.ndarray, radius: float) -> torch.Tensor:
    """All (P, 2) int64 rows of source (N, 3) and target (M, 3) no more than `radius` apart."""
    clouds = [torch.from_numpy(source), torch.from_numpy(target)]
    lengths = [torch.tensor([len(cloud)]) for cloud in clouds]
    return torch.stack(radius_search(*clouds, *lengths, radius), 1)


@dataclass(frozen=True)
class Collate:
    """Samples into a TrainingBatch, or None if it cannot be used: too few matches or points.

    Its hierarchies are built here, in the loader, unless there is a GPU, which takes milliseconds.
    """

    geometry: Geometry
    on_gpu: bool = False

    def __call__(self, samples: list[Sample]) -> TrainingBatch | None:
        kept = [sample for sample in samples if len(sample.matches) >= MINIMUM_MATCHES]
        if not kept:
            return None
        matches, rows = [], torch.zeros(2, dtype=torch.int64)
        for sample in kept:
            matches.append(sample.matches + rows)
            rows = rows + torch.tensor([len(sample.source), len(sample.target)])
        sides = [
            PointBatch.from_clouds(clouds)
            for clouds in ([sample.source for sample in kept], [sample.target for sample in kept])
        ]
        if self.on_gpu:
            levels = [sample_levels(clouds, self.geometry) for clouds in sides]
        else:
            sides = [Hierarchy.build(clouds, self.geometry) for clouds in sides]
            levels = [hierarchy.levels for hierarchy in sides]
        if min(len(level[-1]) for level in levels) < 2:
            return None  # batch norms need two rows
        left_out = [sample.name for sample in samples if len(sample.matches) < MINIMUM_MATCHES]
        names = [sample.name for sample in kept]
        return TrainingBatch(names, *sides, torch.cat(matches), left_out, self.geometry)


@dataclass(frozen=True)
class Batches:
    """The batches of any epoch, in an order of its own; the last, partial one is dropped."""

    samples: TrainingPairs
    geometry: Geometry
    batch_size: int = 4
    workers: int = 0
    on_gpu: bool = False  # the training

    def __post_init__(self):
        if not 0 < self.batch_size <= len(self.samples):
            raise InputError(
                f"batch_size={self.batch_size}: the training set has {len(self.samples)} pairs; "
                f"take between 1 and {len(self.samples)}"
            )

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(self.samples) // self.batch_size

    def epoch(self, epoch: int, first: int = 0) -> Iterator[TrainingBatch | None]:
        """The batches of an epoch from number `first` on."""
        order = np.random.default_rng([self.samples.seed, epoch]).permutation(len(self.samples))
        keys = [(epoch, int(index)) for index in order]
        size = self.batch_size
        return iter(
            DataLoader(
                self.samples,
                batch_sampler=[keys[b * size : (b + 1) * size] for b in range(first, len(self))],
                collate_fn=Collate(self.geometry, self.on_gpu),
                num_workers=self.workers,
            )
        )
