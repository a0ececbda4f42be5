"""Matches of two described clouds by a network that looks at both (pcreg.models.matcher)."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pcreg.features.base import Description
from pcreg.kernels.point_batch import PointBatch
from pcreg.models.matcher import Matcher
from pcreg.models.patches import Patches
from pcreg.models.weights import fingerprint, load_matcher
from pcreg.registration.matching import Matches
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.device import choose_device

MAX_PAIRS = 1024  # of patches, whose points are matched
PAIRS_PER_NODE = 2


class AttentionMatcher:
    """The matches of a trained matcher."""

    name = "attention"

    def __init__(self, network: Matcher, device: str = "cpu") -> None:
        self.device = choose_device(device)
        self.network = network.to(self.device).eval()

    @staticmethod
    def load(weights: str | Path, device: str = "cpu") -> "AttentionMatcher":
        """That of a .safetensors file of `pcreg train`; InputError if it cannot be used."""
        return AttentionMatcher(load_matcher(weights), device)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.network)

    def match(
        self,
        source: Description,
        target: Description,
        voxel: float,
        viewpoints: tuple[np.ndarray, np.ndarray] = (np.zeros(3), np.zeros(3)),  # (3,) or (N, 3) each
    ) -> Matches:
        """Points that are each other's likeliest partner, by the first of them.

        `voxel` is that of the descriptors, metres; `viewpoints` say from where the points were seen.
        """
        if min(len(source.points), len(target.points)) == 0:
            return Matches(np.empty((0, 2), np.int64), np.empty(0, np.float32))
        with ONE_THREAD if self.device == "cpu" else nullcontext(), torch.inference_mode():
            patches = Patches.join(
                [
                    self._patches(cloud, viewpoint, voxel)
                    for cloud, viewpoint in zip((source, target), viewpoints, strict=True)
                ]
            )
            features = np.concatenate([source.features, target.features])
            found = likely_matches(
                self.network, torch.from_numpy(features).float().to(self.device), patches, len(source.points)
            )
            rows, columns, confidence = (each.cpu().numpy() for each in found)
        order = np.argsort(rows, kind="stable")
        return Matches(np.stack([rows, columns], 1)[order], confidence[order])

    def _patches(self, cloud: Description, viewpoint: np.ndarray, voxel: float) -> Patches:
        seen_from = np.broadcast_to(viewpoint, cloud.points.shape).copy()
        batch = PointBatch.from_clouds([cloud.points], [seen_from]).to(self.device)
        return Patches.of(batch, self.network.architecture.node_voxels * voxel)


def likely_matches(
    network: Matcher, features: Tensor, patches: Patches, n_source: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (P,) of the source, rows (P,) of the target and confidences (P,) of one pair of clouds.

    Each pair of points in the likeliest pairs of patches has the probability of its patches times its own;
    those are kept that are best for both points.
    """
    nodes = network.nodes(features, patches)
    likely = network.match_nodes(features, nodes, patches).log_probability[0]
    columns = likely.shape[1]
    count = min(MAX_PAIRS, PAIRS_PER_NODE * int(patches.present.sum()), likely.numel())
    found = likely.flatten().topk(count)
    kept = found.values.isfinite()
    pairs = torch.stack([found.indices // columns, columns + found.indices % columns], 1)[kept]
    fine, source, target = network.match_points(features, nodes, patches, pairs)
    probability = (fine.log_probability + found.values[kept][:, None, None]).exp()
    k, i, j = ((source >= 0)[:, :, None] & (target >= 0)[:, None]).nonzero(as_tuple=True)
    probability, source, target = probability[k, i, j], source[k, i], target[k, j] - n_source
    best_source = probability.new_zeros(n_source).scatter_reduce(0, source, probability, "amax")
    best_target = probability.new_zeros(len(features) - n_source)
    best_target = best_target.scatter_reduce(0, target, probability, "amax")
    mutual = (probability == best_source[source]) & (probability == best_target[target]) & (probability > 0)
    return source[mutual], target[mutual], probability[mutual]
