"""Contrastive loss with a softmax over all other samples (InfoNCE; PointInfoNCE of Xie et al., ECCV 2020).

Each sampled point has to be nearest to its match among the matches of all other samples of the batch and,
with negatives_per_pair, random points of the clouds: matches lie in the overlap alone, and at inference all
points compete.
Samples within `ignore_radius` of a match count neither as positives nor as negatives.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.point_batch import PointBatch
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
        scale = self.temperature**0.5  # of either side, sooner than of all their products
        source, target = source / scale, target / scale
        logits = source[anchors] @ target[partners].T  # (S, S)
        (starts, ends), voxel = batch.pyramid.groups(0), batch.geometry.voxel
        near = self._near(ends, partners, partners, voxel).fill_diagonal_(False)
        logits = logits.masked_fill(near, -torch.inf)
        forward, backward = logits, logits.T
        if self.negatives_per_pair:
            count = self.negatives_per_pair * len(batch.names)
            rows = moved(draw(len(target), count, generator), target.device)
            others = self._others(source[anchors], target[rows], self._near(ends, partners, rows, voxel))
            forward = torch.cat([forward, others], 1)
            rows = moved(draw(len(source), count, generator), source.device)
            others = self._others(target[partners], source[rows], self._near(starts, anchors, rows, voxel))
            backward = torch.cat([backward, others], 1)
        # Cross entropies, for which a GPU would copy the transposed logits, there and back
        forward, backward = ((side.logsumexp(1) - logits.diagonal()).mean() for side in (forward, backward))
        return {"total": (forward + backward) / 2, "forward": forward, "backward": backward}

    def _others(self, samples: Tensor, negatives: Tensor, ignored: Tensor) -> Tensor:
        """Logits (S, K) of samples (S, C) with negatives (K, C) but for those `ignored` (S, K)."""
        return (samples @ negatives.T).masked_fill(ignored, -torch.inf)

    def _near(self, clouds: PointBatch, rows: Tensor, others: Tensor, voxel: float) -> Tensor:
        """Which of the points `rows` (S,) lie next to which `others` (K,) of the same cloud: (S, K)."""
        ends = clouds.lengths.cumsum(0)
        cloud, other = (torch.searchsorted(ends, some.contiguous(), right=True) for some in (rows, others))
        near = torch.cdist(clouds.points[rows], clouds.points[others]) < self.ignore_radius * voxel
        return near & (cloud[:, None] == other)
