"""Jagged batches of point clouds, all points one after another, and groups of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from pcreg.kernels.pyramid_config import rounded
from pcreg.kernels.transfer import to_device


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
        """Batch clouds on their device.

        Each cloud is moved to its own lower corner in float64 and rounded before the cast to float32: the
        network sees differences of coordinates alone, and coordinates far from zero lose no digits.

        Args:
            clouds: One or more clouds (N_b, 3), metres, each in any frame.
            viewpoints: (N_b, 3) for each cloud, the sensor position of each point; by default the origin.
        """
        clouds = [torch.as_tensor(cloud, dtype=torch.float64) for cloud in clouds]
        points = torch.cat(clouds)
        lengths = to_device(torch.tensor([len(cloud) for cloud in clouds], dtype=torch.int64), points.device)
        cloud = torch.repeat_interleave(lengths, output_size=len(points))
        lowest = points.new_full((len(clouds), 3), torch.inf)
        corner = lowest.scatter_reduce(0, cloud[:, None].expand(-1, 3), points, "amin")[cloud]
        seen_from = -corner
        if viewpoints is not None:
            seen_from += torch.cat([torch.as_tensor(places).to(points) for places in viewpoints])
        return PointBatch(rounded(points - corner).float(), lengths, seen_from.float())

    def __len__(self) -> int:
        """The number of points N."""
        return len(self.points)

    def to(self, device: torch.device | str) -> "PointBatch":
        """Return the batch on `device`, without waiting for a GPU."""
        viewpoints = None if self.viewpoints is None else to_device(self.viewpoints, device)
        return PointBatch(to_device(self.points, device), to_device(self.lengths, device), viewpoints)


@dataclass(frozen=True)
class RowGroups:
    """Sizes of G groups of rows."""

    sizes: tuple[int, ...]
    _bounds: dict[torch.device, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.sizes)

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless each group has at least two rows, and all have `n_rows`."""
        if min(self.sizes) < 2:
            raise ValueError(f"groups of {self.sizes} rows: in training a batch norm needs two rows in each")
        if sum(self.sizes) != n_rows:
            raise ValueError(f"groups of {self.sizes} rows are not {n_rows} rows")

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Views of rows (N, ...), one for each group."""
        return rows.split(self.sizes)

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64 on `device`, copied there once: group g has the rows bounds[g] ... bounds[g + 1]."""
        if device not in self._bounds:
            self._bounds[device] = to_device(torch.tensor([0, *accumulate(self.sizes)]), device)
        return self._bounds[device]


@dataclass(frozen=True)
class PaddedRowGroups:
    """Groups of the rows of a padded batch, with their bounds on the device; padding belongs to none."""

    n_rows: int  # padding included
    device_bounds: Tensor  # (G + 1,) int64, on a GPU

    def __len__(self) -> int:
        """The number of groups G."""
        return len(self.device_bounds) - 1

    def check(self, n_rows: int) -> None:
        """Raise ValueError unless there are `n_rows` rows."""
        if n_rows != self.n_rows:
            raise ValueError(f"groups within {self.n_rows} rows are not {n_rows} rows")

    def bounds(self, device: torch.device) -> Tensor:
        """(G + 1,) int64, as `RowGroups.bounds`."""
        return self.device_bounds
