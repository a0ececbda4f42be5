"""Clouds of different sizes in one tensor, which a GPU processes in one step."""

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
    """B clouds with N points in total, or other rows that belong to B parts."""

    points: Tensor  # (N, 3)
    sizes: list[int]  # (B,) of the clouds

    @staticmethod
    def of(clouds: Sequence[Tensor]) -> "Jagged":
        """Join one or more clouds (N_b, 3) of the same dtype and device."""
        return Jagged(torch.cat(list(clouds)), [len(cloud) for cloud in clouds])

    @cached_property
    def lengths(self) -> Tensor:
        """Sizes (B,) int64 of the clouds, on the device of the points."""
        return to_device(torch.tensor(self.sizes), self.points.device)

    @cached_property
    def first(self) -> Tensor:
        """First row (B,) int64 of each cloud."""
        return torch.cumsum(self.lengths, 0) - self.lengths

    @cached_property
    def cloud(self) -> Tensor:
        """Number (N,) int64 of each point's cloud."""
        return torch.repeat_interleave(self.lengths, output_size=len(self.points))

    def split(self) -> list[Tensor]:
        """The points of each cloud."""
        return list(self.points.split(self.sizes))

    def take(self, rows: Tensor) -> "Jagged":
        """Points at rows (M,) int64, which are ordered by cloud; waits for the device."""
        return Jagged(self.points[rows], self._sizes_of(rows))

    def rows_of_clouds(self, rows: Tensor) -> list[Tensor]:
        """Rows (M,) int64, ordered by cloud, as rows of each cloud; waits for the device."""
        return list((rows - self.first[self.cloud[rows]]).split(self._sizes_of(rows)))

    def _sizes_of(self, rows: Tensor) -> list[int]:
        return counts_of_sorted(self.cloud[rows], len(self.sizes)).tolist()

    def of_points(self, values: np.ndarray) -> Tensor:
        """Value (N, ...) of each point's cloud, from (B, ...), in the dtype of the points."""
        return to_device(torch.from_numpy(values).to(self.points.dtype), self.points.device)[self.cloud]

    def moved(self, motions: Sequence[np.ndarray]) -> "Jagged":
        """Each cloud moved by its motion (4, 4)."""
        T = self.of_points(np.stack(motions))
        return Jagged((T[:, :3, :3] * self.points[:, None]).sum(2) + T[:, :3, 3], self.sizes)
