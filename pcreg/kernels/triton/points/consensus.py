"""Sums over the inliers of motions, one program going through all matches for each motion."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

MATCHES = 128  # compared at a time


def inlier_sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    """Sums (H, 17) over the matches that motions (H, 4, 4) bring closer than `distance` metres.

    Of points p (3, P) matched with q (3, P), all float64: the sum of 1 - (residual / distance)^2, then of
    (1, p) (1, q)^T (4, 4) by rows.
    """
    limit = torch.full((1,), distance**2, dtype=torch.float64, device=p.device)  # numbers come in float32
    sums = p.new_empty((len(motions), 17))
    arguments = motions, p, q, limit, sums, p.shape[1]
    launch(_inlier_sums, len(motions), arguments, {"MATCHES": MATCHES}, None, num_warps=4)
    return sums


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["motions", "p", "q", "limit", "sums"])
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
    T, most = motions + 16 * h, tl.load(limit)
    score = tl.zeros((MATCHES,), tl.float64)
    total = tl.zeros((MATCHES, 4, 4), tl.float64)
    for start in range(0, P, MATCHES):
        i = start + tl.arange(0, MATCHES)
        px, py, pz = _column(p, i, P), _column(p + P, i, P), _column(p + 2 * P, i, P)
        qx, qy, qz = _column(q, i, P), _column(q + P, i, P), _column(q + 2 * P, i, P)
        dx = tl.load(T) * px + tl.load(T + 1) * py + tl.load(T + 2) * pz + tl.load(T + 3) - qx
        dy = tl.load(T + 4) * px + tl.load(T + 5) * py + tl.load(T + 6) * pz + tl.load(T + 7) - qy
        dz = tl.load(T + 8) * px + tl.load(T + 9) * py + tl.load(T + 10) * pz + tl.load(T + 11) - qz
        squared = dx * dx + dy * dy + dz * dz
        inlier = (i < P) & (squared < most)
        score += tl.where(inlier, 1 - squared / most, 0.0)
        products = _with_one(px, py, pz)[:, :, None] * _with_one(qx, qy, qz)[:, None, :]
        total += tl.where(inlier[:, None, None], products, 0.0)
    entry = 4 * tl.arange(0, 4)[:, None] + tl.arange(0, 4)[None, :]
    tl.store(sums + 17 * h, tl.sum(score, 0))
    tl.store(sums + 17 * h + 1 + entry, tl.sum(total, 0))


@triton.jit
def _column(values, i, P):
    return tl.load(values + i, mask=i < P, other=0.0)


@triton.jit
def _with_one(x, y, z):
    """Rows (MATCHES, 4) of 1, x, y, z."""
    column = tl.arange(0, 4)[None, :]
    row = tl.where(column == 1, x[:, None], 1.0)
    row = tl.where(column == 2, y[:, None], row)
    return tl.where(column == 3, z[:, None], row)
