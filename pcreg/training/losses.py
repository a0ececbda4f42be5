"""Hardest-contrastive loss of FCGF (Choy, Park and Koltun, ICCV 2019), as its code computes it.

Matched descriptors are pulled within a margin, and each is pushed from the nearest descriptor
among random candidates of the other side, unless that one is a match as well.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from pcreg.kernels.transfer import moved

POSITIVE_MARGIN = 0.1  # on the squared distance
NEGATIVE_MARGIN = 1.4  # on the distance


class Batch(Protocol):
    """Several pairs; once it is moved `to` a device, in one pyramid: all sources, and then all targets."""

    names: list[str]
    pyramid: Pyramid  # of two groups of clouds
    matches: Tensor  # (P, 2) int64
    left_out: list[str]
    geometry: PyramidConfig

    def to(self, device: torch.device | str) -> "Batch": ...

    def descriptors(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the sources' and of the targets' points, from the network's of all rows of the pyramid."""
        ...


class Loss(Protocol):
    """What training asks of a loss."""

    def __call__(
        self, source: Tensor, target: Tensor, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class ContrastiveLoss:
    """Scalars; `total` = `positive` + (`negative0` + `negative1`) / 2."""

    total: Tensor
    positive: Tensor
    negative0: Tensor
    negative1: Tensor


@dataclass(frozen=True)
class HardestContrastive:
    """The loss of a training batch, with samples in proportion to its pairs."""

    positives_per_pair: int = 1024
    candidates_per_pair: int = 256

    def __call__(
        self, source: Tensor, target: Tensor, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Of descriptors source (N, C), target (M, C): the scalars `total` and its parts."""
        n_pairs = len(batch.names)
        sizes = self.positives_per_pair * n_pairs, self.candidates_per_pair * n_pairs
        loss = hardest_contrastive_loss(source, target, batch.matches, generator, *sizes)
        return vars(loss)


def hardest_contrastive_loss(
    features0: Tensor,
    features1: Tensor,
    positives: Tensor,
    generator: torch.Generator,
    n_positives: int = 1024,
    n_candidates: int = 256,
) -> ContrastiveLoss:
    """The loss of random positives against random candidates, both drawn without replacement.

    features0 (N0, C) and features1 (N1, C) of all first and all second clouds of a batch,
    positives (P, 2) int64 rows into them, P >= 1. FCGF draws 1024 positives and 256 candidates
    per pair of the batch. generator lives on the CPU.
    """
    device = positives.device
    sampled = positives[moved(draw(len(positives), n_positives, generator), device)]
    candidates0 = moved(draw(len(features0), n_candidates, generator), device)
    candidates1 = moved(draw(len(features1), n_candidates, generator), device)
    return contrastive_loss(features0, features1, positives, sampled, candidates0, candidates1)


def contrastive_loss(
    features0: Tensor,
    features1: Tensor,
    positives: Tensor,
    sampled: Tensor,
    candidates0: Tensor,
    candidates1: Tensor,
) -> ContrastiveLoss:
    """The loss of `sampled` (S, 2) positives against given candidate rows of either side.

    A negative that is among all `positives` (P, 2) is dropped; with no negative left the term is 0.
    """
    anchor0, anchor1 = features0[sampled[:, 0]], features1[sampled[:, 1]]
    positive = torch.relu((anchor0 - anchor1).square().sum(1) - POSITIVE_MARGIN).mean()
    stride = max(len(features0), len(features1))
    keys = torch.sort(positives[:, 0] + positives[:, 1] * stride).values

    hardest1 = candidates1[_nearest(anchor0, features1[candidates1])]
    is_negative = ~_contains(keys, sampled[:, 0] + hardest1 * stride)
    negative0 = _push(anchor0, features1[hardest1], is_negative)

    hardest0 = candidates0[_nearest(anchor1, features0[candidates0])]
    is_negative = ~_contains(keys, hardest0 + sampled[:, 1] * stride)
    negative1 = _push(anchor1, features0[hardest0], is_negative)

    total = positive + (negative0 + negative1) / 2
    return ContrastiveLoss(total, positive, negative0, negative1)


def draw(population: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` different numbers (count,) int64 below `population`, or all of them if there are no more."""
    # A permutation of a large population takes much longer than to draw and drop repetitions.
    if population > 4 * count:
        drawn = torch.randint(population, (2 * count,), generator=generator).numpy()
        # Sorted with their places in the last digits: numbers sort in a tenth of the time that places take.
        keys = np.sort(drawn * len(drawn) + np.arange(len(drawn)))
        is_first = np.diff(keys // len(drawn), prepend=-1) > 0
        first = np.sort(keys[is_first] % len(drawn))
        if len(first) >= count:  # all but certain
            return torch.from_numpy(drawn[first[:count]])
    return torch.randperm(population, generator=generator)[:count]


@torch.no_grad()
def _nearest(features: Tensor, candidates: Tensor) -> Tensor:
    """The candidate (S,) nearest each feature: S x candidates distances, both bounded by the sampling."""
    return torch.cdist(features.float(), candidates.float()).argmin(1)


def _push(anchors: Tensor, negatives: Tensor, is_negative: Tensor) -> Tensor:
    distance = torch.sqrt((anchors - negatives).square().sum(1) + 1e-7)
    terms = torch.relu(NEGATIVE_MARGIN - distance).square()
    return (terms * is_negative).sum() / is_negative.sum().clamp(min=1)


def _contains(sorted_keys: Tensor, keys: Tensor) -> Tensor:
    at = torch.searchsorted(sorted_keys, keys).clamp(max=len(sorted_keys) - 1)
    return sorted_keys[at] == keys
