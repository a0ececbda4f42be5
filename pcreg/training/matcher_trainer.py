"""Train a matcher on the descriptors of a network that stays as it is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pcreg.evaluation.metrics import feature_matched, inlier_ratio
from pcreg.features.base import Descriptor
from pcreg.io.pairs import PairDataset
from pcreg.kernels.point_batch import PointBatch
from pcreg.models.matcher import Matcher
from pcreg.models.patches import Patches
from pcreg.models.resunet import ResUNet
from pcreg.registration.attention import AttentionMatcher
from pcreg.runtime.errors import InputError
from pcreg.training.losses import Batch
from pcreg.training.trainer import Trainer
from pcreg.training.validation import check_pairs


class MatcherTrainer(Trainer):
    """The trainer, of a matcher; `backbone` gives the descriptors."""

    def __init__(self, network: Matcher, backbone: ResUNet, *arguments: Any, **settings: Any):
        super().__init__(network, *arguments, **settings)
        if self.ranks.count > 1:
            raise InputError("a matcher is trained by one process; start it without torchrun")
        self.backbone = backbone.to(self.ranks.device).eval()

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        features, patches, matches = self._inputs(batch)
        with self.autocast:
            return self.loss(self.network, features, patches, matches, self._generator())

    @torch.no_grad()
    def _inputs(self, batch: Batch) -> tuple[Tensor, Patches, Tensor]:
        """Descriptors of all points at the first scale, sources before targets, their patches and matches."""
        with self.autocast:
            source, target = self.backbone(batch.source), self.backbone(batch.target)
        source, target = batch.descriptors(source.float(), target.float())
        spacing = self.network.architecture.node_voxels * batch.geometry.voxel
        first = (
            (batch.source.levels[0], len(source)),
            (batch.target.levels[0], len(target)),
        )
        patches = Patches.of(_first_clouds(first, len(batch.names)), spacing)
        offset = torch.tensor([0, len(source)], device=source.device)
        return torch.cat([source, target]), patches, batch.matches + offset


def _first_clouds(batches: Sequence[tuple[PointBatch, int]], count: int) -> PointBatch:
    """Of each batch the first `count` clouds, with as many points as are given: those at the first scale."""
    return PointBatch(
        torch.cat([batch.points[:points] for batch, points in batches]),
        torch.cat([batch.lengths[:count] for batch, _ in batches]),
        torch.cat([batch.origins[:count] for batch, _ in batches]),
    )


def match_recall(
    matcher: Matcher,
    descriptor: Descriptor,
    dataset: PairDataset,
    tau: float = 0.1,
    minimum: float = 0.05,
) -> dict[str, float]:
    """Match clouds as they are, and count the matches that the truth confirms.

    A match is right when it is less than `tau` metres off. Returns `inlier_ratio`, the mean over pairs,
    `feature_match_recall`, the fraction of pairs with more than `minimum`, and `matches`, their mean number.
    Raises InputError for a data set without pairs.
    """
    check_pairs(dataset)
    matching = AttentionMatcher(matcher, descriptor.device)
    ratios, counts = [], []
    for pair in dataset.pairs:
        source, target = (descriptor.describe(dataset.cloud(name)) for name in (pair.source, pair.target))
        rows = matching.match(source, target, descriptor.voxel).rows
        matched = source.points[rows[:, 0]], target.points[rows[:, 1]]
        ratios.append(inlier_ratio(*matched, pair.T_target_source, tau))
        counts.append(len(rows))
    return {
        "feature_match_recall": float(feature_matched(ratios, minimum).mean()),
        "inlier_ratio": float(np.mean(ratios)),
        "matches": float(np.mean(counts)),
    }
