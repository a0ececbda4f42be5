"""Depth images fused into a fragment by a truncated signed distance, sampled at single voxels.

A fragment of 3DMatch (Zeng et al., CVPR 2017) is the set of voxels, 6 mm wide, at which the mean truncated
signed distance of 50 depth images is near zero, in a cube before the first camera. The mean at a voxel
depends on that voxel alone, so we take it only where a measured point is near. Of the voxels found, the
published test fragments keep the first in each cell of 25 mm; so do we.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera
from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.signed_distance import DepthImages, distance_sums
from pcreg.kernels.transfer import moved

SAMPLES = 2  # of the surface within each pixel


@dataclass(frozen=True)
class Fusion:
    """Lengths in metres."""

    voxel: float = 0.006
    truncation: float = 0.03
    surface: float = 0.006  # a voxel whose mean distance is less belongs to the surface
    low: tuple[float, float, float] = (-1.5, -1.5, 0.5)  # the cube, in the frame of the first camera
    high: tuple[float, float, float] = (1.5, 1.5, 3.5)
    spacing: float = 0.025  # one point is kept per cell of this edge, the cells counted from the origin
    jump: float = 0.05  # neighbouring pixels whose depths differ by this fraction lie on two surfaces

    def fragments(
        self, camera: DepthCamera, depth: Tensor, T_first_camera: Tensor, generator: torch.Generator
    ) -> list[Tensor]:
        """Points (N, 3) of B fragments from depth (B, K, height, width) and poses (B, K, 4, 4), float32.

        Points are in the frame of each fragment's first camera.
        """
        # Few launches on a GPU; elsewhere fragment by fragment, which a cache holds.
        step = len(depth) if depth.is_cuda else 1
        parts = zip(depth.split(step), T_first_camera.split(step), strict=True)
        return [cloud for images, poses in parts for cloud in self._fuse(camera, images, poses, generator)]

    def _fuse(
        self, camera: DepthCamera, depth: Tensor, T_first_camera: Tensor, generator: torch.Generator
    ) -> list[Tensor]:
        inverse_depth = torch.where(depth > 0, 1 / depth.clamp(min=0.1), 0).flatten(0, 1).contiguous()
        images = DepthImages(inverse_depth, camera.focal, camera.centre, self.jump)
        batch, points = self._candidates(images, T_first_camera, generator)
        total, weight = distance_sums(images, T_first_camera, batch, points, self.truncation)
        kept = ((total.abs() < self.surface * weight) & (weight >= 1)).nonzero()[:, 0]
        batch, points = batch[kept], points[kept]  # still in the order of their voxels
        first = _first_of_each(batch, (points / self.spacing).floor().long() + 512)
        lengths = counts_of_sorted(batch[first], len(depth)).tolist()
        return list(points[first].split(lengths))

    def _candidates(
        self, images: DepthImages, T_first_camera: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Voxels near measured surfaces, sorted: the fragment (M,) and the centre (M, 3) of each."""
        B, K = T_first_camera.shape[:2]
        (height, width), device = images.inverse_depth.shape[1:], T_first_camera.device
        shape = B, K, SAMPLES, height, width
        u, v, shift = (torch.rand(shape, generator=generator, device=device) - 0.5 for _ in range(3))
        u += torch.arange(width, device=device)
        v += torch.arange(height, device=device)[:, None]
        image = torch.arange(B * K, device=device).view(B, K, 1, 1, 1)
        depth = images.depth(image, u, v)
        column, row = images.centre
        near = torch.stack([(u - column) / images.focal, (v - row) / images.focal], -1)
        near = torch.nn.functional.pad(near, (0, 1), value=1.0) * (depth + shift * 3 * self.voxel)[..., None]
        near = near.flatten(2, 4) @ T_first_camera[..., :3, :3].mT + T_first_camera[:, :, None, :3, 3]
        near = near.view(*shape, 3)
        low, high = (moved(torch.tensor(corner), device) for corner in (self.low, self.high))
        usable = (depth > 0) & ((near > low) & (near < high)).all(-1)
        rows = usable.flatten().nonzero()[:, 0]
        batch = rows // depth[0].numel()
        lattice = ((near.view(-1, 3)[rows] - low) / self.voxel).round().long()
        first = _first_of_each(batch, lattice)
        return batch[first], low + lattice[first] * self.voxel


def _first_of_each(batch: Tensor, cell: Tensor) -> Tensor:
    """Rows of the first in each cell (M, 3) of each fragment (M,), by cells; 0 <= cell < 1024."""
    key, order = torch.sort(
        ((batch * 1024 + cell[:, 2]) * 1024 + cell[:, 1]) * 1024 + cell[:, 0], stable=True
    )
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    return order[first]
