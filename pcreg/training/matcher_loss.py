"""The loss of a matcher: divergence of its matches of nodes and points from the truth.

A row's truth is a distribution over the columns and "has no partner". Of a node it is where the partners of
its points are, of a point in a pair of patches all that match it there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.models.matcher import Assignment, Matcher
from pcreg.models.patches import Patches
from pcreg.training.losses import draw


@dataclass(frozen=True)
class MatcherLoss:
    """Loss of a batch of B pairs of clouds."""

    true_pairs: int = 64  # of nodes that share surface, for each pair of clouds: points are matched in these
    found_pairs: int = 64  # and in the best that the matcher finds, most of them wrong at first
    coarse_weight: float = 3.0  # of the nodes' part: most of them have no partner and are soon learned

    def __call__(
        self,
        matcher: Matcher,
        features: Tensor,
        node_features: Tensor,
        patches: Patches,
        matches: Tensor,
        generator: torch.Generator,
    ) -> dict[str, Tensor]:
        """Scalars `coarse`, weighted, and `fine`, zero for a matcher that is right.

        Of descriptors (points, channels) of sources and then targets, features of the nodes that the patches
        were made of, and true matches (P, 2) int64, rows of the descriptors.
        """
        nodes = matcher.nodes(features, node_features, patches)
        coarse = matcher.match_nodes(features, nodes, patches)
        truth = node_truth(patches, matches)
        present = patches.present.chunk(2)
        coarse_loss = _both_ways(coarse, truth, present)
        pairs = self._pairs(coarse, truth, generator)
        fine, source, target = matcher.match_points(features, nodes, patches, pairs)
        matched = point_truth(source, target, matches)
        fine_loss = _both_ways(fine, (matched, matched.transpose(1, 2)), (source >= 0, target >= 0))
        return {"coarse": self.coarse_weight * coarse_loss, "fine": fine_loss}

    @torch.no_grad()
    def _pairs(self, coarse: Assignment, truth: tuple[Tensor, Tensor], generator: torch.Generator) -> Tensor:
        """Pairs (K, 2) of nodes, as numbered in the patches, in which points are matched."""
        B, N, M = coarse.log_probability.shape
        shared = truth[0].reshape(B * N, M).nonzero()
        chosen = draw(len(shared), self.true_pairs * B, generator).to(shared.device)
        found = coarse.log_probability.flatten(1).topk(min(self.found_pairs, N * M), 1).indices
        cloud = torch.arange(B, device=shared.device)[:, None].expand_as(found)
        likely = torch.stack([cloud * N + found // M, found % M], 2).flatten(0, 1)
        finite = coarse.log_probability.flatten()[likely[:, 0] * M + likely[:, 1]].isfinite()
        source, target = torch.cat([shared[chosen], likely[finite]]).unbind(1)
        return torch.stack([source, (B + source // N) * N + target], 1)


def node_truth(patches: Patches, matches: Tensor) -> tuple[Tensor, Tensor]:
    """Share of the points of each node with partners in each node of the other cloud.

    (B, N, M) of sources' nodes and (B, M, N) of targets'; sums are below 1 where points have no partner. A
    point with several partners is shared among them.
    """
    both, n_max = patches.present.shape
    source, target = patches.node[matches[:, 0]], patches.node[matches[:, 1]]
    points = torch.bincount(patches.node, minlength=both * n_max).clamp(min=1)
    sides = []
    for rows, own, other in ((matches[:, 0], source, target), (matches[:, 1], target, source)):
        share = 1 / torch.bincount(rows)[rows].float() / points[own]
        cells = share.new_zeros(both * n_max * n_max)
        cells.index_add_(0, own * n_max + other % n_max, share)
        sides.append(cells.view(both, n_max, n_max))
    return sides[0][: both // 2], sides[1][both // 2 :]


def point_truth(source: Tensor, target: Tensor, matches: Tensor) -> Tensor:
    """True matches (K, L, L') bool among points (K, L) of sources and targets."""
    stride = int(matches.max()) + 1
    keys = torch.sort(matches[:, 0] * stride + matches[:, 1]).values
    wanted = source[:, :, None] * stride + target[:, None]
    found = keys[torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)] == wanted
    return found & (source >= 0)[:, :, None] & (target >= 0)[:, None]


def _both_ways(found: Assignment, truth: tuple[Tensor, Tensor], present: tuple[Tensor, Tensor]) -> Tensor:
    sides = zip((found.rows, found.columns), truth, present, strict=True)
    return sum(divergence(predicted, true, rows) for predicted, true, rows in sides) / 2


def divergence(predicted: Tensor, truth: Tensor, present: Tensor) -> Tensor:
    """Mean Kullback-Leibler divergence from the truth over rows `present` (B, N).

    `predicted` are log-probabilities (B, N, M + 1). The truth (B, N, M) is shares or booleans; the rest of a
    row, up to one, has no partner, and a row with more is divided by its sum. Where a prediction has no room
    for "has no partner", by -inf, partners share all of the truth, and a row without any does not count.
    """
    share = truth.float()
    total = share.sum(2, keepdim=True)
    room = predicted[..., -1:].isfinite()
    share = share / torch.where(room, total.clamp(min=1), total.clamp(min=1e-9))
    without = torch.where(room, 1 - share.sum(2, keepdim=True), 0).clamp(min=0)
    counted = present * (room | (total > 0))[..., 0]
    share = torch.cat([share, without], 2)
    lost = torch.where(share > 0, share * (share.clamp(min=1e-9).log() - predicted), 0).sum(2)
    return (lost * counted).sum() / counted.sum().clamp(min=1)
