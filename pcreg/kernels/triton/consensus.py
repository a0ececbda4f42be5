"""Inliers of motions, a program going through all matches for each, and fits to them and to samples."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels import kabsch
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.rigid_fit import rigid_fit, store_motion

MATCHES = 512  # that a program looks at together
SAMPLES = 32  # that a program fits motions to
MIN_INLIERS = tl.constexpr(kabsch.MIN_POINTS)
SUMS = 1 + kabsch.SUMS  # of each motion


def inlier_sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    """What pcreg.kernels.consensus says."""
    sums = p.new_empty((len(motions), SUMS))
    arguments = motions, p, q, _limit(p, distance), sums, p.shape[1]
    launch(_inlier_sums, len(motions), arguments, {"SUMS": SUMS, "MATCHES": MATCHES}, None, num_warps=4)
    return sums


def fit_samples(p: Tensor, q: Tensor, samples: Tensor, distance: float) -> tuple[Tensor, Tensor]:
    """What pcreg.kernels.consensus says."""
    S, n = samples.shape
    motions = p.new_zeros((S, 4, 4))
    near = torch.empty(S, dtype=torch.bool, device=p.device)
    arguments = p, q, samples.contiguous(), _limit(p, distance), motions, near, p.shape[1], S
    launch(_fit_samples, -(-S // SAMPLES), arguments, {"N": n, "SAMPLES": SAMPLES}, n, num_warps=1)
    return motions, near


def refit(motions: Tensor, p: Tensor, q: Tensor, distance: float, count: int) -> tuple[Tensor, Tensor]:
    """What pcreg.kernels.consensus says."""
    H, motions, tried = len(motions), motions.clone(), motions.clone()
    growing = torch.empty(H, dtype=torch.bool, device=p.device)
    arguments = motions, tried, growing, p, q, _limit(p, distance), p.shape[1], count
    launch(_refit, H, arguments, {"MATCHES": MATCHES}, None, num_warps=4)
    return motions, growing


def _limit(p: Tensor, distance: float) -> Tensor:
    """Squared, on the device: kernels take numbers in float32 alone."""
    return torch.full((1,), distance**2, dtype=torch.float64, device=p.device)


@triton.jit(
    do_not_specialize=["P"],
    do_not_specialize_on_alignment=["motions", "p", "q", "limit", "sums"],
)
def _inlier_sums(
    motions,  # (H, 4, 4) float64, like all of it
    p,  # (3, P)
    q,  # (3, P)
    limit,  # (1,) squared metres
    sums,  # (H, SUMS), out
    P,
    SUMS: tl.constexpr,
    MATCHES: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    score, n, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _sums(
        motions + 16 * h, p, q, limit, P, MATCHES
    )
    out = sums + SUMS * h
    tl.store(out, score)
    tl.store(out + 1, n)
    tl.store(out + 2, px)
    tl.store(out + 3, py)
    tl.store(out + 4, pz)
    tl.store(out + 5, qx)
    tl.store(out + 6, qy)
    tl.store(out + 7, qz)
    tl.store(out + 8, xx)
    tl.store(out + 9, xy)
    tl.store(out + 10, xz)
    tl.store(out + 11, yx)
    tl.store(out + 12, yy)
    tl.store(out + 13, yz)
    tl.store(out + 14, zx)
    tl.store(out + 15, zy)
    tl.store(out + 16, zz)


@triton.jit(
    do_not_specialize=["P", "count"],
    do_not_specialize_on_alignment=["motions", "tried", "growing", "p", "q", "limit"],
)
def _refit(
    motions,  # (H, 4, 4) float64, the best so far; changed
    tried,  # (H, 4, 4), at first the same; changed
    growing,  # (H,) bool, whether scores grow, out
    p,  # (3, P) float64, like the next
    q,  # (3, P)
    limit,  # (1,) squared metres
    P,
    count,  # fits, at most
    MATCHES: tl.constexpr,
):
    """Keep a motion that was tried if its score has grown, and try what fits its inliers, while it grows."""
    h = tl.program_id(0).to(tl.int64)
    motions, tried, entry = motions + 16 * h, tried + 16 * h, tl.arange(0, 16)
    best = tl.full((), -1.0, tl.float64)  # any score is better
    left = count + 1
    while left > 0:
        score, n, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _sums(
            tried, p, q, limit, P, MATCHES
        )
        grown = score > best
        going_on = grown & (n >= MIN_INLIERS)
        tl.store(motions + entry, tl.load(tried + entry), mask=grown)
        tl.store(growing + h, going_on)
        tl.debug_barrier()  # what was tried is read before it is fitted anew
        fit = rigid_fit(n, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, zx, zy, zz)
        r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, exists = fit
        store_motion(tried, r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, going_on & exists)
        tl.debug_barrier()  # all of it is written
        best, left = tl.maximum(best, score), tl.where(going_on, left - 1, 0)


@triton.jit
def _sums(T, p, q, limit, P, MATCHES: tl.constexpr):
    """Those of one motion (4, 4)."""
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
    score, n = tl.sum(score, 0), tl.sum(n, 0)
    spx, spy, spz, sqx, sqy, sqz = _six(spx, spy, spz, sqx, sqy, sqz)
    xx, xy, xz, yx, yy, yz = _six(xx, xy, xz, yx, yy, yz)
    zx, zy, zz = tl.sum(zx, 0), tl.sum(zy, 0), tl.sum(zz, 0)
    return score, n, spx, spy, spz, sqx, sqy, sqz, xx, xy, xz, yx, yy, yz, zx, zy, zz


@triton.jit
def _six(a, b, c, d, e, f):
    return tl.sum(a, 0), tl.sum(b, 0), tl.sum(c, 0), tl.sum(d, 0), tl.sum(e, 0), tl.sum(f, 0)


@triton.jit(
    do_not_specialize=["P", "S"],
    do_not_specialize_on_alignment=["p", "q", "samples", "limit", "motions", "near"],
)
def _fit_samples(
    p,  # (3, P) float64, like the next
    q,  # (3, P)
    samples,  # (S, N) int64
    limit,  # (1,) squared metres
    motions,  # (S, 4, 4) float64, zeros, out
    near,  # (S,) bool, out
    P,
    S,
    N: tl.constexpr,
    SAMPLES: tl.constexpr,
):
    s = tl.program_id(0).to(tl.int64) * SAMPLES + tl.arange(0, SAMPLES)
    inside = s < S
    zero = tl.zeros((SAMPLES,), tl.float64)
    spx, spy, spz, sqx, sqy, sqz = zero, zero, zero, zero, zero, zero
    xx, xy, xz, yx, yy, yz, zx, zy, zz = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for n in tl.static_range(N):
        px, py, pz, qx, qy, qz = _match(p, q, samples + N * s + n, P, inside)
        spx, spy, spz = spx + px, spy + py, spz + pz
        sqx, sqy, sqz = sqx + qx, sqy + qy, sqz + qz
        xx, xy, xz = xx + px * qx, xy + px * qy, xz + px * qz
        yx, yy, yz = yx + py * qx, yy + py * qy, yz + py * qz
        zx, zy, zz = zx + pz * qx, zy + pz * qy, zz + pz * qz
    fit = rigid_fit(zero + N, spx, spy, spz, sqx, sqy, sqz, xx, xy, xz, yx, yy, yz, zx, zy, zz)
    r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, good = fit
    good = good & inside
    for n in tl.static_range(N):
        px, py, pz, qx, qy, qz = _match(p, q, samples + N * s + n, P, inside)
        dx = r00 * px + r01 * py + r02 * pz + tx - qx
        dy = r10 * px + r11 * py + r12 * pz + ty - qy
        dz = r20 * px + r21 * py + r22 * pz + tz - qz
        good = good & (dx * dx + dy * dy + dz * dz < tl.load(limit))
    T = motions + 16 * s
    store_motion(T, r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, good)
    tl.store(T + 15, zero + 1, mask=good)
    tl.store(near + s, good, mask=inside)


@triton.jit
def _match(p, q, row, P, mask):
    """The coordinates of matches in rows of samples, given where these are stored."""
    i = tl.load(row, mask=mask, other=0)
    px, py = tl.load(p + i, mask=mask, other=0.0), tl.load(p + P + i, mask=mask, other=0.0)
    qx, qy = tl.load(q + i, mask=mask, other=0.0), tl.load(q + P + i, mask=mask, other=0.0)
    pz, qz = tl.load(p + 2 * P + i, mask=mask, other=0.0), tl.load(q + 2 * P + i, mask=mask, other=0.0)
    return px, py, pz, qx, qy, qz
