"""Weighted sums over what a motion brings together: each program adds up those of a few points."""

import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.nearest import POINTS, QUERIES, nearest_of

CHANNELS = 32  # multiplied at a time


def weighted_sums(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    T: Tensor,
    distance: float,
    usual: float,
) -> Tensor:
    """What pcreg.kernels.agreement says."""
    (Q, C), M = source_features.shape, len(target)
    parts = source.new_empty((-(-Q // QUERIES), 5, 4))
    limits = source.new_tensor([distance**2, usual])  # kernels take numbers in float32 alone
    clouds = source, target, source_features, target_features
    constants = {"QUERIES": QUERIES, "POINTS": POINTS, "CHANNELS": CHANNELS}
    launch(_weighted_sums, len(parts), (*clouds, T, limits, parts, Q, M, C), constants, None)
    return parts.view(-1, 20)[:, 3:].sum(0)


@triton.jit(
    do_not_specialize=["Q", "M", "C"],
    do_not_specialize_on_alignment=[
        "source",
        "target",
        "source_features",
        "target_features",
        "T",
        "limits",
        "parts",
    ],
)
def _weighted_sums(
    source,  # (Q, 3) float64
    target,  # (M, 3) float64
    source_features,  # (Q, C) float32
    target_features,  # (M, C) float32
    T,  # (4, 4) float64, as the rest is
    limits,  # (2,): squared metres, cosine
    parts,  # (programs, 5, 4), out: the count at the end of the first row, then the sums
    Q,
    M,
    C,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    q = program * QUERIES + tl.arange(0, QUERIES)
    inside = q < Q
    sx = tl.load(source + 3 * q, mask=inside, other=0.0)
    sy = tl.load(source + 3 * q + 1, mask=inside, other=0.0)
    sz = tl.load(source + 3 * q + 2, mask=inside, other=0.0)
    x = tl.load(T) * sx + tl.load(T + 1) * sy + tl.load(T + 2) * sz + tl.load(T + 3)
    y = tl.load(T + 4) * sx + tl.load(T + 5) * sy + tl.load(T + 6) * sz + tl.load(T + 7)
    z = tl.load(T + 8) * sx + tl.load(T + 9) * sy + tl.load(T + 10) * sz + tl.load(T + 11)
    least, nearest = nearest_of(target, M, x[:, None], y[:, None], z[:, None], QUERIES, POINTS)
    most = tl.load(limits)
    near = inside & (least < most)
    nearest = nearest.to(tl.int64)
    products = tl.zeros((QUERIES, CHANNELS), tl.float32)
    for start in range(0, C, CHANNELS):
        c = start + tl.arange(0, CHANNELS)[None, :]
        both = near[:, None] & (c < C)
        a = tl.load(source_features + q[:, None] * C + c, mask=both, other=0.0)
        b = tl.load(target_features + nearest[:, None] * C + c, mask=both, other=0.0)
        products += a * b
    cosine = tl.sum(products, 1).to(tl.float64)
    weight = tl.where(near, (1 - least / most) * tl.maximum(cosine - tl.load(limits + 1), 0.0), 0.0)
    tx = tl.load(target + 3 * nearest, mask=near, other=0.0)
    ty = tl.load(target + 3 * nearest + 1, mask=near, other=0.0)
    tz = tl.load(target + 3 * nearest + 2, mask=near, other=0.0)
    column = tl.arange(0, 4)[None, :]
    one_p, one_q = _with_one(sx, sy, sz, column), _with_one(tx, ty, tz, column)
    total = tl.sum((weight[:, None] * one_p)[:, :, None] * one_q[:, None, :], 0)
    out = parts + 20 * program
    tl.store(out + 3, tl.sum(tl.where(weight > 0, 1.0, 0.0), 0))
    tl.store(out + 4 + 4 * tl.arange(0, 4)[:, None] + column, total)


@triton.jit
def _with_one(x, y, z, column):
    """Rows (QUERIES, 4) of 1, x, y, z."""
    row = tl.where(column == 1, x[:, None], 1.0)
    row = tl.where(column == 2, y[:, None], row)
    return tl.where(column == 3, z[:, None], row)
