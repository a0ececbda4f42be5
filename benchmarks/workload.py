"""The inputs of benchmarks: a cloud, batches of its fragments, and pairs of those with known matches."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import rotation_about
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets

MIN_SCALE = 0.85  # size of the smallest batch of a series, in units of the largest
JITTER = 0.2  # standard deviation of the points of a target, voxels


@dataclass(frozen=True)
class Workload:
    """A cloud with one point per voxel."""

    cloud: PointBatch
    voxels: Tensor  # (N, 3) int64, all different
    size: float  # metres

    def search(self) -> Triplets:
        points, lengths = self.cloud.points, self.cloud.lengths
        return native_triplets(points, points, lengths, lengths, self.size)


@dataclass(frozen=True)
class Clouds:
    """A batch with one point per voxel, as it is for native geometry and on voxel centres for the other."""

    native: PointBatch
    snapped: PointBatch  # row n is the centre of the voxel of native's row n
    size: float  # of a voxel, metres

    @staticmethod
    def of(points: list[np.ndarray], voxels: list[np.ndarray], size: float, device) -> "Clouds":
        """From clouds of points (N_b, 3) in metres and their voxels (N_b, 3) int64, all different."""
        snapped = PointBatch.from_clouds([size * cells for cells in voxels])
        return Clouds(PointBatch.from_clouds(points).to(device), snapped.to(device), size)

    def __len__(self) -> int:
        return len(self.native)

    @cached_property
    def cells(self) -> Tensor:
        """(N, 3) int64, the voxels, counted from each cloud's lower corner."""
        return torch.round(self.snapped.points.double() / self.size).long()


@dataclass(frozen=True)
class Pairs:
    """Several pairs: all sources in one batch, all targets in another."""

    source: Clouds
    target: Clouds
    matches: Tensor  # (P, 2) int64, rows of source and target

    def __len__(self) -> int:
        return len(self.source) + len(self.target)


def load(path: Path | None, size: float, device: torch.device) -> Workload:
    """The cloud in `path`, by default a scan of a simulated room, downsampled to one point per voxel."""
    if path is None:
        from pcreg.datasets.simulated.indoor import record_scans

        points = record_scans(seed=0, index=0).clouds[0].double().numpy()
    else:
        points = read_cloud(path).points
    points = points[voxel_downsample(points, size)]
    voxels = torch.from_numpy(np.floor(points / size)).long()
    return Workload(PointBatch.from_clouds([points]).to(device), voxels.to(device), size)


def fragments(workload: Workload, n: int, clouds: int, count: int) -> list[Clouds]:
    """`count` batches of `clouds` fragments: of n points each in the first, of ever fewer in the others.

    A fragment holds the points nearest to a random one, as a sensor's view of a place does.
    """
    rng = np.random.default_rng(0)
    points, voxels = workload.cloud.points.double().cpu().numpy(), workload.voxels.cpu().numpy()
    batches = []
    for scale in np.linspace(1, MIN_SCALE, count):
        rows = [nearest(points, rng, round(scale * n)) for _ in range(clouds)]
        cut = [points[each] for each in rows], [voxels[each] for each in rows]
        batches.append(Clouds.of(*cut, workload.size, workload.voxels.device))
    return batches


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
    )


def nearest(points: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """The rows, ascending, of the n points (all, if there are fewer) nearest to a random one."""
    n = min(n, len(points))
    distance = np.square(points - points[rng.integers(len(points))]).sum(1)
    return np.sort(np.argpartition(distance, n - 1)[:n])
