"""Matches of two described clouds by a network that attends to both (pcreg.models.matcher)."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pcreg.arrays import to_host
from pcreg.features.base import Description
from pcreg.features.pretrained import weights_for
from pcreg.kernels.point_batch import PointBatch
from pcreg.models.matcher import Matcher
from pcreg.models.patches import Patches
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import fingerprint, load_weights
from pcreg.models.weights_file import NODE_LEVEL
from pcreg.registration.matching.nearest import Matches, match_within_bound
from pcreg.runtime.device import ONE_THREAD, choose_device
from pcreg.runtime.errors import InputError

MAX_PAIRS = 1024  # of patches, whose points are matched
PAIRS_PER_NODE = 2
NEAREST_QUANTILE = 0.1  # of the confidences, for a match that nearest descriptors alone find


class AttentionMatcher:
    """Matches by a trained network of clouds that the same network described."""

    name = "attention"

    def __init__(self, network: ResUNet, device: str = "cpu", with_nearest: bool = True) -> None:
        """Match by a network, and `with_nearest` by nearest descriptors; InputError without a matcher."""
        if network.matcher is None:
            raise InputError("matcher=attention: these weights have no matcher; train some with one")
        self.device, self.with_nearest = choose_device(device), with_nearest
        self.matcher = network.matcher.to(self.device).eval()

    @staticmethod
    def load(
        weights: str | Path | None, voxel: float, device: str = "cpu", with_nearest: bool = True
    ) -> "AttentionMatcher":
        """The matcher of a file of `pcreg train`, or that shipped for this voxel size; or InputError."""
        return AttentionMatcher(load_weights(weights or weights_for(voxel)), device, with_nearest)

    @property
    def fingerprint(self) -> str:
        """Changes with the weights, and with the matches of nearest descriptors."""
        return fingerprint(self.matcher) + (", with nearest ones" if self.with_nearest else "")

    def match(self, source: Description, target: Description, voxel: float) -> Matches:
        """Points that are each other's likeliest partner, or nearest; and each point's likeliest, or nearest.

        `voxel` is that of the descriptors, metres. Raises InputError for descriptions without nodes.
        """
        if source.nodes is None or target.nodes is None:
            raise InputError("matcher=attention: needs a descriptor with weights that have a matcher")
        if min(len(source.points), len(target.points)) == 0:
            return Matches(np.empty((0, 2), np.int64), np.empty(0, np.float32), np.empty((0, 2), np.int64))
        found = self._likely(source, target, voxel)
        if not self.with_nearest:
            return found
        return joined(found, match_within_bound(source.features, target.features))

    def _likely(self, source: Description, target: Description, voxel: float) -> Matches:
        with ONE_THREAD if self.device == "cpu" else nullcontext(), torch.inference_mode():
            features, node_features, normals = (
                self._tensor([to_host(side) for side in both])
                for both in (
                    (source.features, target.features),
                    (source.nodes.features, target.nodes.features),
                    (source.nodes.normals, target.nodes.normals),
                )
            )
            points, nodes = [], []
            for cloud in (source, target):
                corner = to_host(cloud.points).min(0)
                points.append(to_host(cloud.points) - corner)
                nodes.append(to_host(cloud.nodes.points) - corner)
            batches = (
                PointBatch(self._tensor(each), torch.tensor([len(side) for side in each])).to(self.device)
                for each in (points, nodes)
            )
            patches = Patches.of(*batches, normals, voxel * 2**NODE_LEVEL)
            return likely_matches(self.matcher, features, node_features, patches, len(source.points))

    def _tensor(self, parts: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).float().to(self.device)


def likely_matches(
    matcher: Matcher, features: Tensor, node_features: Tensor, patches: Patches, n_source: int
) -> Matches:
    """The matches of the first `n_source` points with the others that are likeliest for both points."""
    nodes = matcher.nodes(features, node_features, patches)
    likely = matcher.match_nodes(features, nodes, patches).log_probability[0]
    columns = likely.shape[1]
    count = min(MAX_PAIRS, PAIRS_PER_NODE * int(patches.present.sum()), likely.numel())
    found = likely.flatten().topk(count)
    kept = found.values.isfinite()
    pairs = torch.stack([found.indices // columns, columns + found.indices % columns], 1)[kept]
    fine, source, target = matcher.match_points(features, nodes, patches, pairs)
    probability = (fine.log_probability + found.values[kept][:, None, None]).exp()
    k, i, j = ((source >= 0)[:, :, None] & (target >= 0)[:, None]).nonzero(as_tuple=True)
    probability, source, target = probability[k, i, j], source[k, i], target[k, j] - n_source
    best_source = probability.new_zeros(n_source).scatter_reduce(0, source, probability, "amax")
    best_target = probability.new_zeros(len(features) - n_source)
    best_target = best_target.scatter_reduce(0, target, probability, "amax")
    forward = (probability == best_source[source]) & (probability > 0)
    mutual = forward & (probability == best_target[target])
    matches, one_way = _sorted(source, target, mutual), _sorted(source, target, forward)
    return Matches(matches[0], probability.cpu().numpy()[matches[1]], one_way[0])


def joined(found: Matches, nearest: Matches) -> Matches:
    """All matches of both; nearest descriptors alone count little; a point may be in two."""
    rows, first = np.unique(np.concatenate([found.rows, nearest.rows]), axis=0, return_index=True)
    least = np.quantile(found.confidence, NEAREST_QUANTILE) if len(found.rows) else 1.0
    confidence = np.append(found.confidence, np.full(len(nearest.rows), least, np.float32))[first]
    return Matches(rows, confidence, np.unique(np.concatenate([found.one_way, nearest.one_way]), axis=0))


def _sorted(source: Tensor, target: Tensor, chosen: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The chosen pairs (P, 2), no source point twice, by source; and their rows among all."""
    numbers = chosen.nonzero()[:, 0].cpu().numpy()
    rows = torch.stack([source, target], 1)[chosen].cpu().numpy()
    first = np.unique(rows[:, 0], return_index=True)[1]
    return rows[first], numbers[first]
