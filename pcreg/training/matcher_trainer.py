"""Train a network together with its matcher, which looks at both clouds of a pair."""

from typing import Any

import torch
from torch import Tensor

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.patches import Patches
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import NODE_LEVEL
from pcreg.runtime.errors import InputError
from pcreg.training.losses import Batch
from pcreg.training.matcher_loss import MatcherLoss
from pcreg.training.trainer import Trainer


class MatcherTrainer(Trainer):
    """Trainer of a matcher and descriptors; descriptors are used alone, too."""

    def __init__(self, network: ResUNet, *arguments: Any, matcher_loss: MatcherLoss, **settings: Any):
        super().__init__(network, *arguments, **settings)
        if self.ranks.count > 1:
            raise InputError("a matcher is trained by one process; start it without torchrun")
        self.matcher_loss = matcher_loss

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        generator = self._generator()
        with self.autocast:
            features, nodes = self.network.features(batch.pyramid)
        sides = batch.descriptors(features.float())
        loss = self.loss(*sides, batch, generator)
        patches, numbers = first_patches(batch.pyramid, len(batch.names), batch.geometry.voxel)
        node_features = _first_rows(batch.pyramid, nodes, numbers)
        matches = torch.stack([batch.matches[:, 0], batch.matches[:, 1] + len(sides[0])], 1)
        with self.autocast:
            matching = self.matcher_loss(
                self.network.matcher, torch.cat(sides), node_features, patches, matches, generator
            )
        return {"total": loss["total"] + sum(matching.values()), "descriptors": loss["total"], **matching}


def first_patches(pyramid: Pyramid, pairs: int, voxel: float) -> tuple[Patches, list[int]]:
    """Patches at the first scale, and the numbers of nodes of sources and targets.

    Further clouds of either side are the same ones at other scales.
    """
    clouds, _ = _first_clouds(pyramid, 0, pairs)
    nodes, numbers = _first_clouds(pyramid, NODE_LEVEL, pairs)
    normals = pyramid.normals and _first_rows(pyramid, pyramid.normals[NODE_LEVEL], numbers)
    return Patches.of(clouds, nodes, normals, voxel * 2**NODE_LEVEL), numbers


def _first_rows(pyramid: Pyramid, of_nodes: Tensor, numbers: list[int]) -> Tensor:
    """The first rows of either side, so many, of values (N, ...) of all nodes."""
    sides = pyramid.row_groups[NODE_LEVEL].split(of_nodes)
    return torch.cat([side[:number] for side, number in zip(sides, numbers, strict=True)])


def _first_clouds(pyramid: Pyramid, level: int, count: int) -> tuple[PointBatch, list[int]]:
    """Points of the first `count` clouds of both sides at a level, and their numbers."""
    some = pyramid.groups(level)
    lengths = torch.stack([each.lengths[:count] for each in some])
    numbers = lengths.sum(1).tolist()
    points = torch.cat([each.points[:number] for each, number in zip(some, numbers, strict=True)])
    return PointBatch(points, lengths.flatten()), numbers
