"""Signed distances of points to the surfaces in depth images (Curless and Levoy, 1996)."""

from typing import NamedTuple

import torch
from torch import Tensor

MIN_DEPTH = 0.1  # metres in front of a camera; points nearer than that are not seen


class DepthImages(NamedTuple):
    """Depth images of equal pinhole cameras; the centre of the first pixel has coordinates (0, 0)."""

    inverse_depth: Tensor  # (images, height, width) float32, contiguous, in 1 / m along z; 0 where missing
    focal: float  # pixels
    centre: tuple[float, float]  # column and row of the optical axis
    jump: float  # neighbouring pixels whose depths differ by this fraction lie on two surfaces

    def depth(self, image: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Interpolate depth at pixels (u, v) of images, linearly in 1 / z as on a plane; 0 if missing."""
        H, W = self.inverse_depth.shape[1:]
        inverse_depth = self.inverse_depth.view(-1)
        inside = (u > -0.5) & (u < W - 0.5) & (v > -0.5) & (v < H - 0.5)
        u, v = u.clamp(0, W - 1), v.clamp(0, H - 1)
        u0, v0 = u.floor().clamp(max=W - 2), v.floor().clamp(max=H - 2)
        a, b = u - u0, v - v0
        corner = image * (W * H) + (v0 * W + u0).long()
        values = torch.stack([inverse_depth[corner + offset] for offset in (0, 1, W, W + 1)])
        weights = torch.stack([(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b])
        nearest = inverse_depth[corner + (a > 0.5).long() + W * (b > 0.5).long()]
        weights = weights * ((values - nearest).abs() < self.jump * nearest)
        mean = (weights * values).sum(0) / weights.sum(0).clamp(min=1e-6)
        return torch.where(inside & (nearest > 0), 1 / mean.clamp(min=1e-3), 0)


def distance_sums(
    images: DepthImages, T_first_camera: Tensor, batch: Tensor, points: Tensor, truncation: float
) -> tuple[Tensor, Tensor]:
    """Add up the signed distances of each point in the images of its fragment.

    A distance is measured from the point to the surface along the camera's axis, and cut to `truncation`. An
    image counts if it has a depth there, unless the point lies more than `truncation` behind the surface.

    Args:
        images: B K images, float32: K images of each of B fragments.
        T_first_camera: (B, K, 4, 4) float32, from each camera to the first camera of its fragment.
        batch: (M,) int64, the fragment of each point.
        points: (M, 3) float32, metres, in the frame of the first camera.
        truncation: Metres.

    Returns:
        The sum (M,) and the number of images that count (M,), float32.
    """
    if points.is_cuda:
        from pcreg.kernels.triton.signed_distance import distance_sums as by_kernel

        return by_kernel(images, T_first_camera, batch, points, truncation, MIN_DEPTH)
    K = T_first_camera.shape[1]
    total, weight = torch.zeros_like(points[:, 0]), torch.zeros_like(points[:, 0])
    R, t = T_first_camera[..., :3, :3], T_first_camera[..., :3, 3]
    for k in range(K):
        # p R rotates p by the inverse of R; a batched matrix product takes ten times as long.
        (x, y, z), rows = (points - t[batch, k])[..., None].unbind(1), R[batch, k]
        x, y, z = (x * rows[:, 0] + y * rows[:, 1] + z * rows[:, 2]).unbind(-1)
        before = z > MIN_DEPTH
        depth = torch.where(before, z, 1)
        u = images.focal * x / depth + images.centre[0]
        v = images.focal * y / depth + images.centre[1]
        measured = images.depth(batch * K + k, u, v)
        distance = measured - z
        counts = before & (measured > 0) & (distance > -truncation)
        total += torch.where(counts, distance.clamp(max=truncation), 0)
        weight += counts
    return total, weight
