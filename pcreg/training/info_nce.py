"""Contrastive loss with a softmax over all other samples (InfoNCE; PointInfoNCE of Xie et al., ECCV 2020).

Each sampled point has to be nearest to its match among the matches of all other samples of the batch and,
with negatives_per_pair, random points of the clouds: matches lie in the overlap alone, and at inference all
points compete.
Samples within `ignore_radius` of a match count neither as positives nor as negatives.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.contrast import logsumexp_apart
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.samples import Samples
from pcreg.kernels.transfer import moved
from pcreg.training.losses import Batch, draw


@dataclass(frozen=True)
class InfoNCE:
    """Loss of unit descriptors; higher temperatures forgive more."""

    temperature: float = 0.05
    positives_per_pair: int = 512
    negatives_per_pair: int = 0  # points of either cloud, drawn from all of it
    ignore_radius: float = 2.5  # voxels around a match in which other samples do not count

    def __call__(
        self, source: Tensor, target: Tensor, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Of descriptors source (N, C), target (M, C): the scalars `total` and its parts."""
        rows = draw(len(batch.matches), self.positives_per_pair * len(batch.names), generator)
        anchors, partners = batch.matches[moved(rows, source.device)].unbind(1)
        radius = self.ignore_radius * batch.geometry.voxel
        starts, ends = batch.pyramid.groups(0)
        # Of either side of a match its place is that of the target.
        sources = self._samples(source, anchors, ends, partners)
        targets = self._samples(target, partners, ends, partners)
        forward = logsumexp_apart(sources, targets, radius, matched=True)
        backward = logsumexp_apart(targets, sources, radius, matched=True)
        if self.negatives_per_pair:
            count = self.negatives_per_pair * len(batch.names)
            rows = moved(draw(len(target), count, generator), target.device)
            others = self._samples(target, rows, ends, rows)
            forward = torch.logaddexp(forward, logsumexp_apart(sources, others, radius, matched=False))
            rows = moved(draw(len(source), count, generator), source.device)
            others = self._samples(source, rows, starts, rows)
            placed = self._samples(target, partners, starts, anchors)
            backward = torch.logaddexp(backward, logsumexp_apart(placed, others, radius, matched=False))
        own = (sources.features * targets.features).sum(1)
        forward, backward = ((side - own).mean() for side in (forward, backward))
        return {"total": (forward + backward) / 2, "forward": forward, "backward": backward}

    def _samples(self, features: Tensor, rows: Tensor, clouds: PointBatch, places: Tensor) -> Samples:
        """The features (S, C) of `rows` (S,), at the points `places` (S,) of clouds."""
        # The root of the temperature on either side, sooner than all of it on their products
        cloud = torch.searchsorted(clouds.lengths.cumsum(0), places.contiguous(), right=True)
        return Samples(features[rows] / self.temperature**0.5, clouds.points[places], cloud)
