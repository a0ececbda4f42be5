"""Depth images with structured light, like the first Kinect's, and fragments fused from them.

Depth comes from the disparity between camera and projector, f b / z: its noise and its steps are even in
disparity, so they grow with the square of the depth (Khoshelham and Elberink, Sensors 2012). Depth is
missing where the projector's light does not fall, on surfaces seen at a grazing angle, and on some
materials. A fixed distortion of the disparity, smooth over the image, differs from camera to camera.

A fragment of 3DMatch (Zeng et al., CVPR 2017) is the set of voxels, 6 mm wide, at which the mean truncated
signed distance of 50 depth images is near zero, in a cube before the first camera. Only voxels near a
measured point are tried here. Like the published test fragments, ours keep the first in each cell of 25 mm.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.draws import Device, normal, uniform
from pcreg.datasets.simulated.solids import Solids, cast, on_device
from pcreg.kernels.cells import counts_of_sorted, starts_of_runs
from pcreg.kernels.signed_distance import DepthImages, distance_sums
from pcreg.kernels.transfer import to_device

BASELINE = 0.075  # metres between camera and projector
FOCAL = 580.0  # pixels, of the real sensor: noise and steps are given in its pixels
STEP = 1 / 32  # pixels of disparity: the 1 / 8 of the sensor, averaged over 4 x 4 of its pixels
WAVES = 12  # of the relief
TILE = 12, 16  # rows and columns of rays that are cast together

# Fusion
SAMPLES = 2  # of the surface within each pixel
TRUNCATION = 5  # voxels
LOW, HIGH = (-1.5, -1.5, 0.5), (1.5, 1.5, 3.5)  # metres: the cube, in the frame of the first camera
JUMP = 0.05  # neighbouring pixels whose depths differ by this fraction lie on two surfaces


@dataclass(frozen=True)
class DepthCamera:
    """A camera with structured light, and how well it measures."""

    width: int = 160  # pixels; width and height are multiples of TILE
    height: int = 120
    horizontal: float = 57.0  # degrees, field of view
    near: float = 0.4  # metres, smallest measured depth
    far: float = 4.0  # metres, largest measured depth
    noise: float = 0.05  # sigma of the disparity, pixels: 1.1 mm at 1 m, 10 mm at 3 m
    distortion: float = 0.06  # sigma of the fixed error of the disparity over the image, pixels
    wander: float = 1.0  # sigma of the displacement of edges, pixels of this image
    dull: float = 0.03  # share of the solids that return no light

    @property
    def focal(self) -> float:
        return self.width / 2 / np.tan(np.radians(self.horizontal / 2))

    @property
    def centre(self) -> tuple[float, float]:
        """Column and row of the optical axis, where pixel (0, 0) has its middle at (0, 0)."""
        return (self.width - 1) / 2, (self.height - 1) / 2

    def rays(self, device: Device) -> Tensor:
        """Directions (height, width, 3) with z = 1, in the camera's frame."""
        u = (torch.arange(self.width, device=device) - self.centre[0]) / self.focal
        v = (torch.arange(self.height, device=device) - self.centre[1]) / self.focal
        columns, rows = torch.meshgrid(u, v, indexing="xy")
        return torch.stack([columns, rows, torch.ones_like(rows)], -1)

    def depth(self, solids: Solids, T_world_camera: Tensor, generator: torch.Generator) -> Tensor:
        """Depth images (F, height, width) float32 in metres along z from poses (F, 4, 4); 0 where missing."""
        device = T_world_camera.device
        rays = self.rays(device)
        length = rays.norm(dim=-1)
        directions = self._tiles((rays / length[..., None])[None] @ T_world_camera[:, None, :3, :3].mT)
        tiles = len(directions) // len(T_world_camera)
        origins = T_world_camera[:, :3, 3].repeat_interleave(tiles, 0)[:, None]
        hits = cast(solids, origins, directions, self.far * 1.3)
        relief = on_device(solids.relief, device)
        dull = uniform(generator, len(solids)) < self.dull
        solid = hits.solid.clamp(min=0)
        at = origins + hits.distance.clamp(max=self.far * 2)[..., None] * directions
        bump = relief[solid] * _waves(at, generator) / hits.cosine.clamp(min=0.35)
        missed = (hits.solid < 0) | dull[solid]
        distance = torch.where(missed, 0, hits.distance + bump)
        z = self._image(distance) / length
        return self._measured(z, self._image(hits.cosine), generator)

    def points(self, depth: Tensor) -> Tensor:
        """Points (N, 3), in the camera's frame, of the measured pixels (height, width)."""
        return (self.rays(depth.device) * depth[..., None])[depth > 0]

    def _measured(self, z: Tensor, cosine: Tensor, generator: torch.Generator) -> Tensor:
        """Measured depths (F, height, width), 0 if missing, from true depths and angles of incidence."""
        F, device = len(z), z.device
        pixels = FOCAL * BASELINE / z.clamp(min=0.1)  # of disparity
        seen = (z > self.near) & (z < self.far)
        # A point lies in the projector's shadow if one to its left is lit from further right.
        lit = torch.arange(self.width, device=device) + pixels * (self.focal / FOCAL)
        seen &= lit >= lit.cummax(-1).values - 0.3
        # At grazing angles and far away the pattern is too faint, by a limit that varies over the image.
        faint = self._smooth(F, 12, generator) * 0.04
        seen &= cosine > 0.05 + 0.006 * z * z + faint
        pixels = self._matched(torch.where(seen, pixels, 0), generator)
        fixed = self._smooth(1, 4, generator) * self.distortion
        noise = 0.8 * self._smooth(F, 48, generator)
        noise += 0.6 * normal(generator, *z.shape)
        steps = ((pixels + fixed + self.noise * noise) / STEP).round()
        measured = FOCAL * BASELINE / (steps * STEP).clamp(min=1)
        return torch.where((pixels > 0) & (measured < self.far), measured, 0)

    def _matched(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """Disparity (F, height, width) found by window matching: edges move, details blur."""
        F, device = len(pixels), pixels.device
        shift = torch.stack([self._smooth(F, 64, generator) for _ in range(2)]) * self.wander
        u = torch.arange(self.width, device=device) + shift[0]
        u = u.round().long().clamp(0, self.width - 1)
        v = torch.arange(self.height, device=device)[:, None] + shift[1]
        v = v.round().long().clamp(0, self.height - 1)
        moved = pixels.flatten(1).gather(1, (v * self.width + u).flatten(1)).view_as(pixels)
        pixels = torch.where((moved - pixels).abs() > 0.04 * pixels, moved, pixels)  # edges alone
        # In places foreground and background are averaged, which leaves flying points between them.
        alike_within = 0.02 + 0.2 * (self._smooth(F, 24, generator) - 0.2).clamp(min=0)
        padded = torch.nn.functional.pad(pixels[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        total, weight = torch.zeros_like(pixels), torch.zeros_like(pixels)
        for row, column in product(range(3), repeat=2):
            near = padded[:, row : row + self.height, column : column + self.width]
            alike = ((near - pixels).abs() < alike_within * pixels) & (near > 0)
            total += torch.where(alike, near, 0)
            weight += alike
        return total / weight.clamp(min=1)

    def _smooth(self, F: int, columns: int, generator: torch.Generator) -> Tensor:
        """Smooth noise (F, height, width) of about unit variance, with this many bumps per row."""
        coarse, size = normal(generator, F, 1, columns * 3 // 4, columns), (self.height, self.width)
        return 1.2 * torch.nn.functional.interpolate(coarse, size, mode="bicubic", align_corners=True)[:, 0]

    def _tiles(self, image: Tensor) -> Tensor:
        """(F, height, width, 3) -> (F * tiles, rays per tile, 3)."""
        rows, columns = TILE
        split = image.unflatten(1, (-1, rows)).unflatten(3, (-1, columns))  # F, a, rows, b, columns, 3
        return split.transpose(2, 3).reshape(-1, rows * columns, 3)

    def _image(self, tiles: Tensor) -> Tensor:
        """(F * tiles, rays per tile) -> (F, height, width)."""
        rows, columns = TILE
        split = tiles.reshape(-1, self.height // rows, self.width // columns, rows, columns)
        return split.transpose(2, 3).reshape(-1, self.height, self.width)


def _waves(points: Tensor, generator: torch.Generator) -> Tensor:
    """A bumpy function of points (..., 3) with values of about -1 to 1: waves and folds of many lengths."""
    wavelength = 0.08 * 6 ** uniform(generator, WAVES)  # 8 to 48 cm
    direction = torch.nn.functional.normalize(normal(generator, WAVES, 3), dim=1)
    phase = 2 * torch.pi * uniform(generator, WAVES)
    weight = (wavelength / wavelength.sum()).sqrt() / WAVES**0.5 * 1.4
    angle = points @ (direction * (2 * torch.pi / wavelength)[:, None]).T + phase
    angle[..., ::3] = angle[..., ::3].sin().abs() * 2 - 1  # sharp valleys: folds
    return angle.sin() @ weight


@dataclass(frozen=True)
class Fusion:
    """Fusion of depth images: voxels with mean signed distance below a voxel."""

    voxel: float = 0.006  # metres
    spacing: float = 0.025  # metres: edge of the cells, from the origin, that keep one point each

    def fragments(
        self, camera: DepthCamera, depth: Tensor, T_first_camera: Tensor, generator: torch.Generator
    ) -> list[Tensor]:
        """Points (N, 3) of B fragments from depth (B, K, height, width) and poses (B, K, 4, 4), float32.

        Points are in the frame of each fragment's first camera.
        """
        # All at once on a GPU, for few launches; one by one on a CPU, as a fragment fits its cache.
        step = len(depth) if depth.is_cuda else 1
        parts = zip(depth.split(step), T_first_camera.split(step), strict=True)
        return [cloud for images, poses in parts for cloud in self._fuse(camera, images, poses, generator)]

    def _fuse(
        self, camera: DepthCamera, depth: Tensor, T_first_camera: Tensor, generator: torch.Generator
    ) -> list[Tensor]:
        inverse_depth = torch.where(depth > 0, 1 / depth.clamp(min=0.1), 0).flatten(0, 1).contiguous()
        images = DepthImages(inverse_depth, camera.focal, camera.centre, JUMP)
        batch, points = self._candidates(images, T_first_camera, generator)
        total, weight = distance_sums(images, T_first_camera, batch, points, TRUNCATION * self.voxel)
        kept = ((total.abs() < self.voxel * weight) & (weight >= 1)).nonzero()[:, 0]
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
        u, v, shift = (uniform(generator, *shape) - 0.5 for _ in range(3))
        u += torch.arange(width, device=device)
        v += torch.arange(height, device=device)[:, None]
        image = torch.arange(B * K, device=device).view(B, K, 1, 1, 1)
        depth = images.depth(image, u, v)
        column, row = images.centre
        near = torch.stack([(u - column) / images.focal, (v - row) / images.focal], -1)
        near = torch.nn.functional.pad(near, (0, 1), value=1.0) * (depth + shift * 3 * self.voxel)[..., None]
        near = near.flatten(2, 4) @ T_first_camera[..., :3, :3].mT + T_first_camera[:, :, None, :3, 3]
        near = near.view(*shape, 3)
        low, high = (to_device(torch.tensor(corner), device) for corner in (LOW, HIGH))
        usable = (depth > 0) & ((near > low) & (near < high)).all(-1)
        rows = usable.flatten().nonzero()[:, 0]
        batch = rows // depth[0].numel()
        lattice = ((near.view(-1, 3)[rows] - low) / self.voxel).round().long()
        first = _first_of_each(batch, lattice)
        return batch[first], low + lattice[first] * self.voxel


def _first_of_each(batch: Tensor, cell: Tensor) -> Tensor:
    """Rows of the first voxel in each cell (M, 3) of each fragment (M,), by cell; 0 <= cell < 1024."""
    key = ((batch * 1024 + cell[:, 2]) * 1024 + cell[:, 1]) * 1024 + cell[:, 0]
    key, order = key.sort(stable=True)
    return order[starts_of_runs(key)]
