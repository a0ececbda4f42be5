"""What two scans say of each other's free space."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import inverse
from pcreg.geometry.subsample import every_nth
from pcreg.kernels.free_space import look, views_of
from pcreg.kernels.range_image import Grid, Views
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, kept_on, on
from pcreg.registration.judge.free_space import (
    CELL_RADIANS,
    COLUMNS,
    MAX_QUERY_POINTS,
    ROWS,
    FreeSpace,
    places_of,
)
from pcreg.registration.judge.overlap import Overlap

GRID = Grid(ROWS, COLUMNS, float(CELL_RADIANS))


class DeviceFreeSpace(FreeSpace):
    """That of pcreg.registration.judge.free_space, on a device, each answer with one wait for it."""

    def __init__(
        self,
        source: Floats,
        target: Floats,
        margin: float,
        viewpoints: tuple[Floats, Floats],
        device: str,
    ) -> None:
        self.margin, self.viewpoints, self.device = margin, viewpoints, device
        self.scans = kept_on(source, device), kept_on(target, device)
        self._some = [every_nth(scan, MAX_QUERY_POINTS).contiguous() for scan in self.scans]
        self._views = {}

    def __call__(self, motions: Floats) -> Floats:
        counts = self._looks(motions, self._some, self.margin, self.margin)
        # The third are those in front, in one view at least
        source, target = array(torch.stack([each[:, 2] for each in counts]))
        fractions: Floats = (source / len(self._some[0]) + target / len(self._some[1])) / 2
        return fractions

    def _counts(self, T_target_source: Floats, overlap: Overlap) -> list[list[int]]:
        T, half = T_target_source[None], self.margin / 2
        touched = [on(rows, self.device) for rows in (overlap.touching, overlap.touched)]
        counts = torch.cat(self._looks(T, self.scans, self.margin, half, touched))
        if self._seen(half) is not self._seen(self.margin):
            counts[:, 2:] = torch.cat(self._looks(T, self.scans, half, half, touched))[:, 2:]
        found: list[list[int]] = counts.tolist()
        return found

    def _looks(
        self,
        motions: Floats,
        scans: Sequence[Tensor],
        margin: float,
        near: float,
        touched: Sequence[Tensor | None] = (None, None),
    ) -> list[Tensor]:
        """What pcreg.kernels.free_space.look counts of each motion (H, 4, 4): twice (H, 4).

        Of the source, moved, in the views of the target that go with the margin, and the other way round.
        """
        back = np.array([inverse(T) for T in motions])
        moved = on(np.stack([motions, back]), self.device)
        ways = zip(self._seen(margin)[::-1], scans, moved, touched, strict=True)
        return [look(views, scan, T, margin, near, rows) for views, scan, T, rows in ways]

    def _views_of(self, scan: Tensor, viewpoint: Floats, margin: float) -> Views:
        if viewpoint.ndim == 1:
            return views_of(scan, None, on(viewpoint[None], self.device), GRID)
        masks, places = zip(*places_of(viewpoint, margin), strict=True)
        view = np.full(len(viewpoint), -1, dtype=np.int32)
        for number, mask in enumerate(masks):
            view[mask] = number
        return views_of(scan, on(view, self.device), on(np.array(places), self.device), GRID)
