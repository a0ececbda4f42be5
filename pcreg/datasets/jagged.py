"""Clouds in one tensor, which a GPU processes in one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.transfer import to_device


@dataclass(frozen=True)
class Jagged:
    """B clouds with N points in all, or other rows of B parts."""

    points: Tensor  # (N, 3)
    sizes: list[int]  # (B,) of the clouds

    @staticmethod
    def of(clouds: Sequence[Tensor]) -> "Jagged":
        """Clouds (N_b, 3) of one dtype and device, at least one."""
        return Jagged(torch.cat(list(clouds)), [len(cloud) for cloud in clouds])

    @cached_property
    def lengths(self) -> Tensor:
        """(B,) int64, the sizes where the points are."""
        return to_device(torch.tensor(self.sizes), self.points.device)

    @cached_property
    def first(self) -> Tensor:
        """(B,) int64, the row at which each cloud begins."""
        return torch.cumsum(self.lengths, 0) - self.lengths

    @cached_property
    def cloud(self) -> Tensor:
        """(N,) int64, the cloud of each point."""
        return torch.repeat_interleave(self.lengths, output_size=len(self.points))

    def split(self) -> list[Tensor]:
        """The points of each cloud."""
        return list(self.points.split(self.sizes))

    def take(self, rows: Tensor) -> "Jagged":
        """The points in rows (M,) int64, cloud by cloud; waits for the device."""
        return Jagged(self.points[rows], self._sizes_of(rows))

    def rows_of_clouds(self, rows: Tensor) -> list[Tensor]:
        """Rows (M,) int64, cloud by cloud, as rows of each cloud; waits for the device."""
        return list((rows - self.first[self.cloud[rows]]).split(self._sizes_of(rows)))

    def _sizes_of(self, rows: Tensor) -> list[int]:
        return counts_of_sorted(self.cloud[rows], len(self.sizes)).tolist()

    def of_points(self, values: np.ndarray) -> Tensor:
        """Values (B, ...) of the clouds for each point: (N, ...), in the dtype of the points."""
        return to_device(torch.from_numpy(values).to(self.points.dtype), self.points.device)[self.cloud]

    def moved(self, motions: Sequence[np.ndarray]) -> "Jagged":
        """Each cloud moved by its motion (4, 4)."""
        T = self.of_points(np.stack(motions))
        return Jagged((T[:, :3, :3] * self.points[:, None]).sum(2) + T[:, :3, 3], self.sizes)
