"""Signed distances to depth images: a program for a few points goes through the images of their fragments."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.blocks import row_of, three_at
from pcreg.kernels.triton.launch import launch

POINTS = tl.constexpr(128)  # of a program


def distance_sums(
    images: tuple, T_first_camera: Tensor, batch: Tensor, points: Tensor, truncation: float, min_depth: float
) -> tuple[Tensor, Tensor]:
    """Sums and counts as in pcreg.kernels.signed_distance, equal up to rounding."""
    inverse_depth, focal, centre, jump = images
    M, (H, W), K = len(points), inverse_depth.shape[1:], T_first_camera.shape[1]
    total, weight = torch.empty_like(points[:, 0]), torch.empty_like(points[:, 0])
    tensors = inverse_depth, T_first_camera.contiguous(), batch, points.contiguous(), total, weight
    numbers = map(float, (focal, *centre, jump, truncation, min_depth))
    arguments = *tensors, *numbers, M, K, W, H
    launch(_distance_sums, -(-M // POINTS.value), arguments, {}, num_warps=4, enable_fp_fusion=False)
    return total, weight


@triton.jit(
    do_not_specialize=["M", "K", "W", "H"],
    do_not_specialize_on_alignment=["inverse_depth", "T_first_camera", "batch", "points", "total", "weight"],
)
def _distance_sums(
    inverse_depth,  # (B K, H, W) float32
    T_first_camera,  # (B, K, 4, 4) float32
    batch,  # (M,) int64
    points,  # (M, 3) float32
    total,  # (M,) float32, out, like the next
    weight,  # (M,) float32
    focal,
    centre_u,
    centre_v,
    jump,
    truncation,
    min_depth,
    M,
    K,
    W,
    H,
):
    m = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    inside = m < M
    px, py, pz = three_at(points + 3 * m, inside)
    first = tl.load(batch + m, mask=inside, other=0) * K
    distances = tl.zeros((POINTS,), tl.float32)
    count = tl.zeros((POINTS,), tl.float32)
    for k in range(0, K):
        T = T_first_camera + 16 * (first + k)
        xx, xy, xz, xt = row_of(T, inside)
        yx, yy, yz, yt = row_of(T + 4, inside)
        zx, zy, zz, zt = row_of(T + 8, inside)
        x, y, z = px - xt, py - yt, pz - zt
        x, y, z = x * xx + y * yx + z * zx, x * xy + y * yy + z * zy, x * xz + y * yz + z * zz
        before = inside & (z > min_depth)
        depth = tl.where(before, z, 1.0)
        u = tl.div_rn(focal * x, depth) + centre_u
        v = tl.div_rn(focal * y, depth) + centre_v
        image = inverse_depth + (first + k) * (H * W)
        measured = _depth(image, u, v, before, W, H, jump)
        distance = measured - z
        counts = before & (measured > 0) & (distance > -truncation)
        distances += tl.where(counts, tl.minimum(distance, truncation), 0.0)
        count += tl.where(counts, 1.0, 0.0)
    tl.store(total + m, distances, mask=inside)
    tl.store(weight + m, count, mask=inside)


@triton.jit
def _depth(image, u, v, before, W, H, jump):
    """Depth (POINTS,) at pixels (u, v) of images (H, W); 0 if it is missing, or the point behind a camera."""
    seen = before & (u > -0.5) & (u < W - 0.5) & (v > -0.5) & (v < H - 0.5)
    u, v = tl.where(seen, tl.clamp(u, 0.0, W - 1.0), 0.0), tl.where(seen, tl.clamp(v, 0.0, H - 1.0), 0.0)
    u0, v0 = tl.minimum(tl.floor(u), W - 2.0), tl.minimum(tl.floor(v), H - 2.0)
    a, b = u - u0, v - v0
    corner = image + (v0.to(tl.int32) * W + u0.to(tl.int32))
    at_00 = tl.load(corner, mask=seen, other=0.0)
    at_10 = tl.load(corner + 1, mask=seen, other=0.0)
    at_01 = tl.load(corner + W, mask=seen, other=0.0)
    at_11 = tl.load(corner + W + 1, mask=seen, other=0.0)
    upper, lower = tl.where(a > 0.5, at_10, at_00), tl.where(a > 0.5, at_11, at_01)
    nearest = tl.where(b > 0.5, lower, upper)
    most = jump * nearest
    of_00 = tl.where(tl.abs(at_00 - nearest) < most, (1 - a) * (1 - b), 0.0)
    of_10 = tl.where(tl.abs(at_10 - nearest) < most, a * (1 - b), 0.0)
    of_01 = tl.where(tl.abs(at_01 - nearest) < most, (1 - a) * b, 0.0)
    of_11 = tl.where(tl.abs(at_11 - nearest) < most, a * b, 0.0)
    total = of_00 * at_00 + of_10 * at_10 + of_01 * at_01 + of_11 * at_11
    mean = tl.div_rn(total, tl.maximum(of_00 + of_10 + of_01 + of_11, 1e-6))
    return tl.where(seen & (nearest > 0), tl.div_rn(1.0, tl.maximum(mean, 1e-3)), 0.0)
