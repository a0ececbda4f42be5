"""Contrastive loss with a softmax over all other samples.

InfoNCE on points, as PointInfoNCE (Xie et al., ECCV 2020). Each sampled point has to be more similar to its
match than to the matches of all other samples of the batch and, with negatives_per_pair, than to random
points of the clouds: matches lie only in the overlap, but at inference all points compete.
Samples within `ignore_radius` of a match count neither as positives nor as negatives.
"""

from dataclasses import dataclass

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from pcreg.datasets.collate import TrainingBatch
from pcreg.kernels.point_batch import PointBatch
from pcreg.training.losses import draw

IGNORED = -1e30  # similarity of samples that do not count; finite, for gradients


@dataclass(frozen=True)
class Samples:
    """Descriptors and positions of S sampled points."""

    features: Tensor  # (S, C)
    points: Tensor  # (S, 3) float32, metres
    cloud: Tensor  # (S,) int64

    def similarities(self, keys: "Samples", radius: float, matched: bool) -> Tensor:
        """Similarities (S, K) with keys; IGNORED for near keys of the same cloud.

        Near is within `radius` metres. If `matched`, key n is the match of sample n and always counts.
        """
        axes = zip(self.points.T, keys.points.T, strict=True)  # `torch.cdist` takes 40 times as long on a GPU
        squared = sum((own[:, None] - other) ** 2 for own, other in axes)
        near = (squared < radius**2) & (self.cloud[:, None] == keys.cloud)
        if matched:
            near.fill_diagonal_(False)
        return (self.features @ keys.features.T).masked_fill(near, IGNORED)


@dataclass(frozen=True)
class InfoNCE:
    """InfoNCE loss of unit descriptors; high temperatures weight hard negatives less."""

    temperature: PositiveFloat = 0.05
    positives_per_pair: PositiveInt = 512
    negatives_per_pair: NonNegativeInt = 0  # points of either cloud, drawn from all of it
    ignore_radius: NonNegativeFloat = 2.5  # voxels around a match in which other samples do not count

    def __call__(
        self, source: Tensor, target: Tensor, batch: TrainingBatch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Compute `total` and its parts."""
        count, device = self.positives_per_pair * len(batch.names), source.device
        anchors, partners = batch.matches[draw(len(batch.matches), count, generator, device)].unbind(1)
        radius = self.ignore_radius * batch.geometry.voxel
        source_clouds, target_clouds = batch.pyramid.groups()
        # Both points of a match get the position of its target point.
        sources = self._samples(source, anchors, target_clouds, partners)
        targets = self._samples(target, partners, target_clouds, partners)
        similarities = sources.similarities(targets, radius, matched=True)
        forward, backward = similarities.logsumexp(1), similarities.logsumexp(0)
        if self.negatives_per_pair:
            count = self.negatives_per_pair * len(batch.names)
            rows = draw(len(target), count, generator, device)
            others = self._samples(target, rows, target_clouds, rows)
            similarities = sources.similarities(others, radius, matched=False)
            forward = torch.logaddexp(forward, similarities.logsumexp(1))
            rows = draw(len(source), count, generator, device)
            others = self._samples(source, rows, source_clouds, rows)
            placed = self._samples(target, partners, source_clouds, anchors)
            similarities = placed.similarities(others, radius, matched=False)
            backward = torch.logaddexp(backward, similarities.logsumexp(1))
        own = (sources.features * targets.features).sum(1)
        forward, backward = ((side - own).mean() for side in (forward, backward))
        return {"total": (forward + backward) / 2, "forward": forward, "backward": backward}

    def _samples(self, features: Tensor, rows: Tensor, clouds: PointBatch, places: Tensor) -> Samples:
        """Samples with features of `rows` (S,), at points `places` (S,) of `clouds`."""
        # Dividing both sides by the root of the temperature is cheaper than dividing their products
        cloud = torch.searchsorted(clouds.lengths.cumsum(0), places.contiguous(), right=True)
        return Samples(features[rows] / self.temperature**0.5, clouds.points[places], cloud)
