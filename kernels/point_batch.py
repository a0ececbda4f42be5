"""A jagged batch of point clouds: all points one after another, and how many belong to each cloud."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.rounding import rounded
from pcreg.kernels.transfer import moved


@dataclass(frozen=True)
class PointBatch:
    """B clouds with N points in all. Row n of any feature matrix of the batch describes points[n]."""

    points: Tensor  # (N, 3) float32 metres, each cloud's lower corner at zero
    lengths: Tensor  # (B,) int64
    viewpoints: Tensor | None = None  # (N, 3) float32, from where each point was seen

    @staticmethod
    def from_clouds(
        clouds: Sequence[np.ndarray | Tensor], viewpoints: Sequence[np.ndarray | Tensor] | None = None
    ) -> "PointBatch":
        """Batch clouds (N_b, 3), in any frame, where they lie, with the viewpoints (N_b, 3) of their points.

        By default each cloud was seen from its origin.

        Each is moved to its own lower corner in float64 before it is cast: the network sees
        differences of coordinates alone, and coordinates far from zero lose no digits. What the move
        leaves in the last digits is rounded away (pcreg.kernels.rounding).
        """
        clouds = [torch.as_tensor(cloud, dtype=torch.float64) for cloud in clouds]
        local = [rounded(cloud - cloud.amin(0)) if len(cloud) else cloud for cloud in clouds]
        points = torch.cat(local).float() if local else torch.empty(0, 3)
        lengths = torch.tensor([len(cloud) for cloud in local], dtype=torch.int64, device=points.device)
        if viewpoints is None:
            viewpoints = [cloud.new_zeros(1, 3).expand(len(cloud), 3) for cloud in clouds]
        seen_from = [
            (torch.as_tensor(places).to(cloud) - cloud.amin(0)).float()
            for cloud, places in zip(clouds, viewpoints, strict=True)
            if len(cloud)
        ]
        return PointBatch(points, lengths, torch.cat(seen_from) if seen_from else torch.empty(0, 3))

    def __len__(self) -> int:
        """The number of points N."""
        return len(self.points)

    def select(self, rows: Tensor) -> "PointBatch":
        """The sub-batch of the given rows (M,) int64, which must come cloud by cloud."""
        ends = torch.searchsorted(rows, self.lengths.cumsum(0))
        viewpoints = None if self.viewpoints is None else self.viewpoints[rows]
        return PointBatch(self.points[rows], torch.diff(ends, prepend=ends.new_zeros(1)), viewpoints)

    def to(self, device: torch.device | str) -> "PointBatch":
        """The same on `device`, which is not waited for on the way to a GPU."""
        viewpoints = None if self.viewpoints is None else moved(self.viewpoints, device)
        return PointBatch(moved(self.points, device), moved(self.lengths, device), viewpoints)
