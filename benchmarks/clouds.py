"""The clouds that networks are measured on: fragments of one scan, in batches of different sizes.

A fragment holds the points nearest to a random one, as a sensor's view of a place does.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from workload import Workload

from pcreg.kernels.cells import cloud_of_rows
from pcreg.kernels.point_batch import PointBatch

SMALLEST = 0.85  # size of the smallest batch of a series, in units of the largest


@dataclass(frozen=True)
class Clouds:
    """A batch with one point per voxel, as it is for native geometry and on voxel centres for the others."""

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

    def batch(self, snap: bool) -> PointBatch:
        return self.snapped if snap else self.native

    @cached_property
    def cells(self) -> Tensor:
        """(N, 3) int64, the voxels, counted from each cloud's lower corner."""
        return torch.round(self.snapped.points.double() / self.size).long()

    @cached_property
    def voxels(self) -> Tensor:
        """(N, 4) int32 of cloud, x, y, z, as spconv takes them."""
        return torch.cat([cloud_of_rows(self.snapped.lengths)[:, None], self.cells], 1).int()

    @cached_property
    def shape(self) -> list[int]:
        """Of the grid of the voxels, in multiples of 8, which halve three times."""
        return [8 * (largest // 8 + 1) for largest in self.cells.amax(0).tolist()]


def fragments(workload: Workload, n: int, clouds: int, count: int, seed: int = 0) -> list[Clouds]:
    """`count` batches of `clouds` fragments: of n points each in the first, of ever fewer in the others."""
    rng = np.random.default_rng(seed)
    points, voxels = workload.cloud.points.double().cpu().numpy(), workload.voxels.cpu().numpy()
    batches = []
    for scale in np.linspace(1, SMALLEST, count):
        rows = [nearest(points, rng, round(scale * n)) for _ in range(clouds)]
        cut = [points[each] for each in rows], [voxels[each] for each in rows]
        batches.append(Clouds.of(*cut, workload.size, workload.voxels.device))
    return batches


def nearest(points: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """The rows, ascending, of the n points (all, if there are fewer) nearest to a random one."""
    n = min(n, len(points))
    distance = np.square(points - points[rng.integers(len(points))]).sum(1)
    return np.sort(np.argpartition(distance, n - 1)[:n])


def cut_or_repeat(cloud: PointBatch, n: int) -> PointBatch:
    """n points: the first of the cloud, or several copies of it, each a cloud of its own."""
    copies, rest = divmod(n, len(cloud))
    lengths = [len(cloud)] * copies + [rest] * (rest > 0)
    points = torch.cat([cloud.points[:length] for length in lengths])
    return PointBatch(points, torch.tensor(lengths, device=points.device))
