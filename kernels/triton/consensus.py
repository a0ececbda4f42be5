"""Sums over the inliers of motions: a program per motion goes through all matches."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

MATCHES = 512  # that a program looks at together


def inlier_sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    """What pcreg.kernels.consensus says."""
    H, P = len(motions), p.shape[1]
    sums = p.new_empty((H, 17))
    limit = torch.full((1,), distance**2, dtype=torch.float64, device=p.device)
    arguments = motions, p, q, limit, sums, P
    launch(_inlier_sums, H, arguments, {"MATCHES": MATCHES}, None, num_warps=4)
    return sums


@triton.jit(
    do_not_specialize=["P"],
    do_not_specialize_on_alignment=["motions", "p", "q", "limit", "sums"],
)
def _inlier_sums(
    motions,  # (H, 4, 4) float64, like all of it
    p,  # (3, P)
    q,  # (3, P)
    limit,  # (1,) squared metres
    sums,  # (H, 17), out
    P,
    MATCHES: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    T = motions + 16 * h
    r00, r01, r02, tx = tl.load(T), tl.load(T + 1), tl.load(T + 2), tl.load(T + 3)
    r10, r11, r12, ty = tl.load(T + 4), tl.load(T + 5), tl.load(T + 6), tl.load(T + 7)
    r20, r21, r22, tz = tl.load(T + 8), tl.load(T + 9), tl.load(T + 10), tl.load(T + 11)
    most = tl.load(limit)
    zero = tl.zeros((MATCHES,), tl.float64)
    score, n, spx, spy, spz, sqx, sqy, sqz = zero, zero, zero, zero, zero, zero, zero, zero
    xx, xy, xz, yx, yy, yz, zx, zy, zz = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for start in range(0, P, MATCHES):
        i = start + tl.arange(0, MATCHES)
        inside = i < P
        px = tl.load(p + i, mask=inside, other=0.0)
        py = tl.load(p + P + i, mask=inside, other=0.0)
        pz = tl.load(p + 2 * P + i, mask=inside, other=0.0)
        qx = tl.load(q + i, mask=inside, other=0.0)
        qy = tl.load(q + P + i, mask=inside, other=0.0)
        qz = tl.load(q + 2 * P + i, mask=inside, other=0.0)
        dx = r00 * px + r01 * py + r02 * pz + tx - qx
        dy = r10 * px + r11 * py + r12 * pz + ty - qy
        dz = r20 * px + r21 * py + r22 * pz + tz - qz
        squared = dx * dx + dy * dy + dz * dz
        inlier = inside & (squared < most)
        score += tl.where(inlier, 1 - squared / most, 0.0)
        n += tl.where(inlier, 1.0, 0.0)
        px, py, pz = tl.where(inlier, px, 0.0), tl.where(inlier, py, 0.0), tl.where(inlier, pz, 0.0)
        qx, qy, qz = tl.where(inlier, qx, 0.0), tl.where(inlier, qy, 0.0), tl.where(inlier, qz, 0.0)
        spx, spy, spz = spx + px, spy + py, spz + pz
        sqx, sqy, sqz = sqx + qx, sqy + qy, sqz + qz
        xx, xy, xz = xx + px * qx, xy + px * qy, xz + px * qz
        yx, yy, yz = yx + py * qx, yy + py * qy, yz + py * qz
        zx, zy, zz = zx + pz * qx, zy + pz * qy, zz + pz * qz
    out = sums + 17 * h
    tl.store(out, tl.sum(score, 0))
    tl.store(out + 1, tl.sum(n, 0))
    tl.store(out + 2, tl.sum(spx, 0))
    tl.store(out + 3, tl.sum(spy, 0))
    tl.store(out + 4, tl.sum(spz, 0))
    tl.store(out + 5, tl.sum(sqx, 0))
    tl.store(out + 6, tl.sum(sqy, 0))
    tl.store(out + 7, tl.sum(sqz, 0))
    tl.store(out + 8, tl.sum(xx, 0))
    tl.store(out + 9, tl.sum(xy, 0))
    tl.store(out + 10, tl.sum(xz, 0))
    tl.store(out + 11, tl.sum(yx, 0))
    tl.store(out + 12, tl.sum(yy, 0))
    tl.store(out + 13, tl.sum(yz, 0))
    tl.store(out + 14, tl.sum(zx, 0))
    tl.store(out + 15, tl.sum(zy, 0))
    tl.store(out + 16, tl.sum(zz, 0))
