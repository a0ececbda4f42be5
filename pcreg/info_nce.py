"""Contrastive loss with a softmax over all other samples (InfoNCE; PointInfoNCE of Xie et al., ECCV 2020).

Each sampled point has to tell its match from the matches of all other samples of the batch. Samples next
to a match are neither right nor wrong and are left out.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pcreg.batch import PointBatch
from pcreg.loss import Batch, draw


@dataclass(frozen=True)
class InfoNCE:
    """Loss of unit descriptors; higher temperatures forgive more."""

    temperature: float = 0.05
    positives_per_pair: int = 512
    spared: float = 2.5  # voxels around a match in which other samples do not count

    def __call__(
        self, source: Tensor, target: Tensor, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Of descriptors source (N, C), target (M, C): the scalars `total` and its parts."""
        rows = draw(len(batch.matches), self.positives_per_pair * len(batch.names), generator)
        anchors, partners = batch.matches[rows.to(source.device)].unbind(1)
        logits = source[anchors] @ target[partners].T / self.temperature  # (S, S)
        logits = logits.masked_fill(
            self._spared(batch.target.levels[0], partners, batch.geometry.voxel), -torch.inf
        )
        truth = torch.arange(len(logits), device=logits.device)
        forward, backward = cross_entropy(logits, truth), cross_entropy(logits.T, truth)
        return {"total": (forward + backward) / 2, "forward": forward, "backward": backward}

    def _spared(self, clouds: PointBatch, rows: Tensor, voxel: float) -> Tensor:
        """Which of the points `rows` (S,) lie next to which others of the same cloud: (S, S), symmetric."""
        cloud = torch.searchsorted(clouds.lengths.cumsum(0), rows.contiguous(), right=True)
        near = torch.cdist(clouds.points[rows], clouds.points[rows]) < self.spared * voxel
        return (near & (cloud[:, None] == cloud)).fill_diagonal_(False)
