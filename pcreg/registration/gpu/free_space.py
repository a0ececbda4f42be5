"""What two scans say of each other's free space."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import inverse
from pcreg.geometry.subsample import every_nth
from pcreg.registration.free_space import (
    CELL_RADIANS,
    COLUMNS,
    MAX_QUERY_POINTS,
    ROWS,
    UNSEEN,
    FreeSpace,
    places_of,
)
from pcreg.registration.gpu.arrays import array, kept_on, motion, on
from pcreg.registration.msac import Floats
from pcreg.registration.overlap import Overlap


class Views(NamedTuple):
    """Of V places where a sensor stood, how far it saw in each direction."""

    origins: Tensor  # (V, 1, 3) float64, metres
    ranges: Tensor  # (V, ROWS * COLUMNS) float64, metres, or UNSEEN, by cells

    def look(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Metres (V, N) to points (N, 3), and to what was seen in their direction, or UNSEEN."""
        cells, distance = _cells(points - self.origins)
        return distance, self.ranges.gather(1, cells)


class DeviceFreeSpace(FreeSpace):
    """That of pcreg.registration.free_space, on a device, each answer with one wait for it."""

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
        back = np.array([inverse(T) for T in motions])
        R, t = motion(np.stack([motions, back]), self.device)  # (2, H, ...)
        (source, target), (of_source, of_target) = self._some, self._seen(self.margin)
        fractions = 0.0
        for points, way, views in ((source, 0, of_target), (target, 1, of_source)):
            moved = points @ R[way] + t[way][:, None]  # (H, N, 3)
            distance, seen = views.look(moved.view(-1, 3))
            in_front = (distance < seen - self.margin).any(0).view(moved.shape[:2])
            fractions = fractions + in_front.double().mean(1) / 2
        return array(fractions)

    def _counts(self, T_target_source: Floats, overlap: Overlap) -> list[list[int]]:
        R, t = motion(np.stack([T_target_source, inverse(T_target_source)]), self.device)
        of_source, of_target = self._seen(self.margin)
        near_source, near_target = self._seen(self.margin / 2)
        counts, touching = [], (overlap.touching, overlap.touched)
        for way, views, near in ((0, of_target, near_target), (1, of_source, near_source)):
            points = self.scans[way] @ R[way] + t[way]
            touched = on(touching[way], self.device)
            look = distance, seen = views.look(points)
            counts += [(distance < seen - self.margin).sum(), (seen > UNSEEN).sum()]
            distance, seen = look if near is views else near.look(points)
            in_front = (distance < seen - self.margin / 2).any(0)
            counts += [(in_front & ~touched).sum(), ((seen > UNSEEN).any(0) & touched).sum()]
        found: list[list[int]] = torch.stack(counts).view(2, 4).tolist()
        return found

    def _views_of(self, scan: Tensor, viewpoint: Floats, margin: float) -> Views:
        if viewpoint.ndim == 1:
            origins = on(viewpoint[None], self.device)
            return Views(origins[:, None], _range_image(scan - origins)[None])
        masks, places = zip(*places_of(viewpoint, margin), strict=True)
        origins = on(np.array(places), self.device)
        parts = [scan.index_select(0, on(np.flatnonzero(mask), self.device)) for mask in masks]
        images = [_range_image(part - place) for part, place in zip(parts, origins, strict=True)]
        return Views(origins[:, None], torch.stack(images))


def _range_image(points: Tensor) -> Tensor:
    """Metres (ROWS * COLUMNS,) to the nearest of points (N, 3) in each cell, or UNSEEN."""
    cells, distance = _cells(points)
    ranges = distance.new_full((ROWS * COLUMNS,), torch.inf).scatter_reduce_(0, cells, distance, "amin")
    return torch.where(ranges.isinf(), UNSEEN, ranges)


def _cells(points: Tensor) -> tuple[Tensor, Tensor]:
    """The cell (..., N) int64 of the range image and the range (..., N) of points (..., N, 3)."""
    x, y, z = points.unbind(-1)
    distance = ((x * x + y * y) + z * z).sqrt()
    elevation = torch.asin(z / distance.clamp(min=1e-9))
    row, column = ((angle / CELL_RADIANS).floor().long() for angle in (elevation, torch.atan2(y, x)))
    return (row + ROWS // 2) * COLUMNS + column + COLUMNS // 2, distance
