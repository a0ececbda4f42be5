"""What is hidden of a surface from many places at once."""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import max_pool2d

from pcreg.geometry.viewpoint import FACE_CELLS, MIN_INCIDENCE_COSINE, WIDTH, View
from pcreg.registration.gpu.arrays import array, on

MAX_RAYS = 1 << 21  # computed together, in about 400 MB


class DeviceView(View):
    """That of pcreg.geometry.viewpoint, on a device."""

    max_rays = MAX_RAYS

    def __init__(
        self, surface: NDArray[np.float64], normals: NDArray[np.float64], margin: float, device: str
    ) -> None:
        super().__init__(surface, normals, margin)
        self.device = device

    @cached_property
    def _columns(self) -> tuple[Tensor, Tensor]:
        """Points and normals (3, N): brought when they are asked for, as mostly those of some points are."""
        points, normals = (on(rows.T, self.device) for rows in (self.surface, self.normals))
        return points, normals

    def of_points(self, count: int) -> "DeviceView":
        fewer = super().of_points(count)
        return DeviceView(fewer.surface, fewer.normals, fewer.margin, self.device)

    def _hidden(self, places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        P, N = len(places), len(self.surface)
        points, normals = self._columns
        rays = points[:, None] - on(places.T, self.device)[:, :, None]  # (3, P, N)
        distance = _dot(rays, rays).sqrt()
        cosine = _dot(rays, normals[:, None]).abs() / distance.clamp(min=1e-9)
        cell = _cube_cells(rays).view(-1)
        nearest = distance.new_full((P * 6 * FACE_CELLS**2,), torch.inf)
        nearest = nearest.scatter_reduce(0, cell, distance.view(-1), "amin")
        images = nearest.view(P, 6, FACE_CELLS, FACE_CELLS)
        # A cell at the edge of a face has neighbours of infinite range, as everything beyond the padding has
        farthest = max_pool2d(torch.nn.functional.pad(images, (1, 1, 1, 1), value=torch.inf), 3, stride=1)
        occluder = farthest.view(-1)[cell].view(P, N)
        slope = (1 - cosine.clamp(max=1.0) ** 2).sqrt() / cosine.clamp(min=MIN_INCIDENCE_COSINE)
        behind = distance - self.margin - distance * WIDTH * slope > occluder
        edge_on = cosine < MIN_INCIDENCE_COSINE
        found = torch.stack([(behind & ~edge_on).double().mean(1), edge_on.double().mean(1)])
        hidden, seen_edge_on = array(found)
        return hidden, seen_edge_on


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Products of vectors (3, ...)."""
    return (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]


def _cube_cells(rays: Tensor) -> Tensor:
    """The cell (P, N) int64 of rays (3, P, N), as pcreg.geometry.viewpoint counts them."""
    axis = rays.abs().argmax(0)
    main, *others = (rays.gather(0, ((axis + shift) % 3)[None])[0] for shift in range(3))
    divisor = main.abs().clamp(min=1e-9)
    cell = 6 * torch.arange(len(axis), device=rays.device)[:, None] + 2 * axis + (main > 0)
    for other in others:
        angle = torch.atan(other / divisor)
        within = ((angle / torch.pi * 2 + 0.5) * FACE_CELLS).long().clamp(0, FACE_CELLS - 1)
        cell = cell * FACE_CELLS + within
    return cell
