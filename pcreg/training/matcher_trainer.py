"""Train a matcher on the descriptors of a network that stays as it is.

Describing clouds takes longer than matching them, so that each batch is described once and used for several
steps (data echoing; Choi et al., 2019), each time without another part of either cloud.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

MIN_KEPT = 0.4  # of a cloud, when a plane cuts the rest off


@dataclass(frozen=True)
class DescribedBatch:
    """What a step needs of B pairs of clouds; rows of sources come before those of targets."""

    names: list[str]
    left_out: list[str]
    features: Tensor  # (points, channels) float32
    patches: Patches
    matches: Tensor  # (P, 2) int64, rows of the points that truly match


class MatcherTrainer(Trainer):
    """The trainer, of a matcher; `backbone` gives the descriptors. `echoes` steps are taken on each batch."""

    def __init__(
        self, network: Matcher, backbone: ResUNet, *arguments: Any, echoes: int = 1, **settings: Any
    ):
        super().__init__(network, *arguments, **settings)
        if self.ranks.count > 1:
            raise InputError("a matcher is trained by one process; start it without torchrun")
        self.backbone = backbone.to(self.ranks.device).eval()
        self.echoes = echoes

    def _step(self, batch: Batch, writer) -> float:
        """The loss of the last of the steps on a batch."""
        described = self._described(batch)
        for _ in range(self.echoes):
            loss = super()._step(described, writer)
        return loss

    def _loss(self, batch: DescribedBatch) -> dict[str, Tensor]:
        state = np.random.SeedSequence([self.seed, self.state.step]).generate_state(1)
        generator = torch.Generator().manual_seed(int(state[0]))
        patches, matches = cropped(batch.patches, batch.matches, generator)
        with self.autocast:
            return self.loss(self.network, batch.features, patches, matches, generator)

    @torch.no_grad()
    def _described(self, batch: Batch) -> DescribedBatch:
        """Descriptors of all points at the first scale, their patches and matches."""
        with self.autocast:
            source, target = self.backbone(batch.source), self.backbone(batch.target)
        source, target = batch.descriptors(source.float(), target.float())
        spacing = self.network.architecture.node_voxels * batch.geometry.voxel
        first = (
            (batch.source.levels[0], len(source)),
            (batch.target.levels[0], len(target)),
        )
        patches = Patches.of(_first_clouds(first, len(batch.names)), spacing)
        matches = batch.matches + torch.tensor([0, len(source)], device=source.device)
        return DescribedBatch(batch.names, batch.left_out, torch.cat([source, target]), patches, matches)


def cropped(patches: Patches, matches: Tensor, generator: torch.Generator) -> tuple[Patches, Tensor]:
    """Each cloud without the nodes beyond a random plane, and the true matches that are left.

    From 40 % of the nodes of a cloud to all of them stay; all do if no match would be left.
    """
    clouds, device = len(patches.present), matches.device
    directions = torch.randn(clouds, 3, 1, generator=generator).to(device)
    kept = MIN_KEPT + (1 - MIN_KEPT) * torch.rand(clouds, generator=generator).to(device)
    heights = (patches.points @ directions)[..., 0].masked_fill(~patches.present, torch.inf)
    last = (patches.present.sum(1) * kept).ceil().long() - 1
    highest = heights.sort(1).values.gather(1, last[:, None])
    present = patches.present & (heights <= highest)
    left = present.flatten()[patches.node[matches]].all(1)
    return (replace(patches, present=present), matches[left]) if left.any() else (patches, matches)


def _first_clouds(batches: Sequence[tuple[PointBatch, int]], count: int) -> PointBatch:
    """Of each batch the first `count` clouds, with as many points as are given: those at the first scale."""
    return PointBatch(
        torch.cat([batch.points[:points] for batch, points in batches]),
        torch.cat([batch.lengths[:count] for batch, _ in batches]),
        torch.cat([batch.viewpoints[:points] for batch, points in batches]),
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
