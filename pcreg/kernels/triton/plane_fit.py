"""Normals of planes: one program per block of points, all in registers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted
from pcreg.kernels.cpu import neighbors
from pcreg.kernels.triton.blocks import three_at
from pcreg.kernels.triton.launch import launch

BLOCK = tl.constexpr(128)  # points of a program
STEPS = tl.constexpr(30)  # of Newton's method; at a double root each halves the distance
MIN_SLOPE = tl.constexpr(3e-8)  # least slope to divide by, as it is zero at a double root
MIN_NEIGHBORS = tl.constexpr(neighbors.MIN_NEIGHBORS)
MIN_VARIANCE_RATIO = tl.constexpr(neighbors.MIN_VARIANCE_RATIO)
TINY = tl.constexpr(torch.finfo(torch.float64).tiny)


def surface_normals(points: Tensor, viewpoints: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Unit normals (N, 3) of points (N, 3), towards their viewpoints (N, 3), by `plane_normals`.

    Arguments as in kernels/cpu/neighbors.py. Takes about 90 bytes for each pair.
    """
    counts = counts_of_sorted(i, len(points))
    x, y, z = (points[j] - points[i]).unbind(1)
    terms = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    sums = torch.segment_reduce(terms, "sum", lengths=counts, axis=0, unsafe=True)
    return plane_normals(counts, sums.double(), (viewpoints - points).double()).to(points.dtype)


def plane_normals(counts: Tensor, sums: Tensor, towards: Tensor) -> Tensor:
    """`plane_normals` of kernels/cpu/neighbors.py; counts (N,) int64, sums (N, 9), towards (N, 3) float64."""
    N, normals = len(counts), torch.empty_like(towards)
    arguments = counts, sums, towards, normals, N
    # Without fused multiply-adds the variance of coinciding points is zero, as on the CPU
    launch(_normals, -(-N // BLOCK.value), arguments, {}, enable_fp_fusion=False)
    return normals


@triton.jit(do_not_specialize=["N"], do_not_specialize_on_alignment=["counts", "sums", "towards", "normals"])
def _normals(
    counts,  # (N,) int64
    sums,  # (N, 9) float64
    towards,  # (N, 3) float64
    normals,  # (N, 3) float64, out
    N,
):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    count = tl.load(counts + n, mask=inside, other=0)
    whole = tl.maximum(count, 1).to(tl.float64)
    x, y, z = three_at(sums + 9 * n, inside)
    xx, xy, xz = three_at(sums + 9 * n + 3, inside)
    yy, yz, zz = three_at(sums + 9 * n + 6, inside)
    x, y, z = x / whole, y / whole, z / whole
    x, y, z = _least_direction(
        xx / whole - x * x,
        xy / whole - x * y,
        xz / whole - x * z,
        yy / whole - y * y,
        yz / whole - y * z,
        zz / whole - z * z,
    )
    to_x, to_y, to_z = three_at(towards + 3 * n, inside)
    sign = tl.where((x * to_x + y * to_y) + z * to_z < 0, -1.0, 1.0)
    enough = count >= MIN_NEIGHBORS
    tl.store(normals + 3 * n, tl.where(enough, sign * x, 0.0), mask=inside)
    tl.store(normals + 3 * n + 1, tl.where(enough, sign * y, 0.0), mask=inside)
    tl.store(normals + 3 * n + 2, tl.where(enough, sign * z, 0.0), mask=inside)


@triton.jit
def _least_direction(xx, xy, xz, yy, yz, zz):
    """As least_direction of kernels/cpu/neighbors.py, but with Newton's steps to the root of its cubic."""
    trace = tl.maximum((xx + yy) + zz, TINY)
    xx, xy, xz, yy, yz, zz = xx / trace, xy / trace, xz / trace, yy / trace, yz / trace, zz / trace
    mean = ((xx + yy) + zz) / 3
    a, b, c = xx - mean, yy - mean, zz - mean
    p = tl.sqrt((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6)
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = tl.minimum(tl.maximum(determinant / tl.maximum(2 * (p * p * p), 1e-30), -1.0), 1.0)
    # cos(3 t) = 4 cos(t)^3 - 3 cos(t): Newton's steps from -1 approach the least root, in [-1, -1/2]
    root = tl.zeros_like(cosine) - 1.0
    for _ in range(STEPS):
        missing = tl.maximum(cosine - (4 * root * root - 3) * root, 0.0)
        root = tl.minimum(root + missing / tl.maximum(12 * root * root - 3, MIN_SLOPE), -0.5)
    least = mean + 2 * p * root
    a, b, c = xx - least, yy - least, zz - least
    x0, y0, z0 = _cross(a, xy, xz, xz, yz, c)
    x1, y1, z1 = _cross(xy, b, yz, a, xy, xz)
    x2, y2, z2 = _cross(xz, yz, c, xy, b, yz)
    first = tl.sqrt((x0 * x0 + y0 * y0) + z0 * z0)
    second = tl.sqrt((x1 * x1 + y1 * y1) + z1 * z1)
    third = tl.sqrt((x2 * x2 + y2 * y2) + z2 * z2)
    is_first, is_second = (first >= second) & (first >= third), second >= third
    x = tl.where(is_first, x0, tl.where(is_second, x1, x2))
    y = tl.where(is_first, y0, tl.where(is_second, y1, y2))
    z = tl.where(is_first, z0, tl.where(is_second, z1, z2))
    longest = tl.maximum(tl.maximum(first, second), third)
    clear = longest > MIN_VARIANCE_RATIO
    scale = tl.where(clear, 1 / tl.where(clear, longest, 1.0), 0.0)
    return x * scale, y * scale, z * scale


@triton.jit
def _cross(x, y, z, u, v, w):
    return y * w - z * v, z * u - x * w, x * v - y * u
