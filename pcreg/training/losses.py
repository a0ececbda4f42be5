"""Hardest-contrastive loss of FCGF (Choy, Park and Koltun, ICCV 2019), as its code computes it.

Matched descriptors are pulled within a margin, and each is pushed from the nearest descriptor
among random candidates of the other side, unless that descriptor is a match, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor

from pcreg.datasets.collate import TrainingBatch
from pcreg.kernels.transfer import to_device

# (descriptors of sources (N, C), descriptors of targets (M, C), their batch, generator on the CPU) -> the
# scalar `total` and its parts
Loss = Callable[[Tensor, Tensor, TrainingBatch, torch.Generator], dict[str, Tensor]]
POSITIVE_MARGIN = 0.1  # on the squared distance
NEGATIVE_MARGIN = 1.4  # on the distance


@dataclass(frozen=True)
class HardestContrastive:
    """Hardest-contrastive loss of a training batch, with numbers of samples per pair."""

    positives_per_pair: PositiveInt = 1024
    candidates_per_pair: PositiveInt = 256

    def __call__(
        self, source: Tensor, target: Tensor, batch: TrainingBatch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Compute `total` and its parts from random positives and candidates."""
        n_positives = self.positives_per_pair * len(batch.names)
        n_candidates = self.candidates_per_pair * len(batch.names)
        positives, device = batch.matches, batch.matches.device
        sampled = positives[draw(len(positives), n_positives, generator, device)]
        candidates = [draw(len(side), n_candidates, generator, device) for side in (source, target)]
        return contrastive_loss(source, target, positives, sampled, *candidates)


def contrastive_loss(
    features0: Tensor,
    features1: Tensor,
    positives: Tensor,
    sampled: Tensor,
    candidates0: Tensor,
    candidates1: Tensor,
) -> dict[str, Tensor]:
    """Compute the loss of `sampled` (S, 2) positives against candidate rows of either side.

    `total` = `positive` + (`negative0` + `negative1`) / 2. A negative that is one of all `positives` (P, 2)
    is dropped; a term without negatives is 0.
    """
    rows0, rows1 = sampled.unbind(1)
    anchor0, anchor1 = features0[rows0], features1[rows1]
    positive = torch.relu((anchor0 - anchor1).square().sum(1) - POSITIVE_MARGIN).mean()
    stride = max(len(features0), len(features1))
    keys = torch.sort(positives[:, 0] + positives[:, 1] * stride).values
    hardest1 = candidates1[_nearest(anchor0, features1[candidates1])]
    negative0 = _push(anchor0, features1[hardest1], ~_contains(keys, rows0 + hardest1 * stride))
    hardest0 = candidates0[_nearest(anchor1, features0[candidates0])]
    negative1 = _push(anchor1, features0[hardest0], ~_contains(keys, hardest0 + rows1 * stride))
    total = positive + (negative0 + negative1) / 2
    return {"total": total, "positive": positive, "negative0": negative0, "negative1": negative1}


def draw(population: int, count: int, generator: torch.Generator, device: torch.device | str) -> Tensor:
    """Draw `count` different int64 numbers below `population`, or all, to `device`."""
    # Drawing from a large population and dropping repetitions is much faster than a permutation of it.
    if population > 4 * count:
        drawn = torch.randint(population, (2 * count,), generator=generator).numpy()
        # Each key has the number and, as its last digits, the place: sorting is ten times as fast as argsort.
        keys = np.sort(drawn * len(drawn) + np.arange(len(drawn)))
        is_first = np.diff(keys // len(drawn), prepend=-1) > 0
        first = np.sort(keys[is_first] % len(drawn))
        if len(first) >= count:  # nearly always
            return to_device(torch.from_numpy(drawn[first[:count]]), device)
    return to_device(torch.randperm(population, generator=generator)[:count], device)


@torch.no_grad()
def _nearest(features: Tensor, candidates: Tensor) -> Tensor:
    """Row (S,) of the candidate that is nearest to each feature."""
    return torch.cdist(features.float(), candidates.float()).argmin(1)


def _push(anchors: Tensor, negatives: Tensor, is_negative: Tensor) -> Tensor:
    distance = torch.sqrt((anchors - negatives).square().sum(1) + 1e-7)
    terms = torch.relu(NEGATIVE_MARGIN - distance).square()
    return (terms * is_negative).sum() / is_negative.sum().clamp(min=1)


def _contains(sorted_keys: Tensor, keys: Tensor) -> Tensor:
    at = torch.searchsorted(sorted_keys, keys).clamp(max=len(sorted_keys) - 1)
    return sorted_keys[at] == keys
