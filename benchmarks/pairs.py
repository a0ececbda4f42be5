"""Training pairs with matches known by construction: each target is its source, moved and jittered."""

from dataclasses import dataclass

import numpy as np
import torch
from clouds import Clouds, nearest
from torch import Tensor
from workload import Workload

from pcreg.geometry.se3 import rotation_about
from pcreg.geometry.voxel_grid import voxel_downsample

JITTER = 0.2  # standard deviation, voxels


@dataclass(frozen=True)
class Pairs:
    """Several pairs: all sources in one batch, all targets in another."""

    source: Clouds
    target: Clouds
    matches: Tensor  # (P, 2) int64, rows of source and target
    n_pairs: int

    def __len__(self) -> int:
        return len(self.source) + len(self.target)


def pairs(workload: Workload, n: int, n_pairs: int, seed: int) -> Pairs:
    """Pairs of a fragment of n points and what is left of it, one point per voxel, once it has moved."""
    rng = np.random.default_rng(seed)
    scan, voxels = workload.cloud.points.double().cpu().numpy(), workload.voxels.cpu().numpy()
    size, device = workload.size, workload.voxels.device
    sources, source_voxels, targets, matches = [], [], [], []
    first = np.zeros(2, dtype=np.int64)
    for _ in range(n_pairs):
        rows = nearest(scan, rng, n)
        moved = scan[rows] @ rotation_about(rng.standard_normal(3), rng.uniform(0, 180)).T
        moved += rng.uniform(-1, 1, 3) + rng.normal(0, JITTER * size, moved.shape)
        kept = voxel_downsample(moved, size)
        matches.append(np.stack([kept, np.arange(len(kept))], 1) + first)
        first = first + np.array([len(rows), len(kept)])
        sources.append(scan[rows])
        source_voxels.append(voxels[rows])
        targets.append(moved[kept])
    target_voxels = [np.floor(cloud / size).astype(np.int64) for cloud in targets]
    return Pairs(
        Clouds.of(sources, source_voxels, size, device),
        Clouds.of(targets, target_voxels, size, device),
        torch.from_numpy(np.concatenate(matches)).to(device),
        n_pairs,
    )
