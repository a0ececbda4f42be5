"""Sums over what a motion brings together, each program those of a few points, and the next motion."""

import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.points.nearest import POINTS, QUERIES, nearest_of
from pcreg.kernels.triton.rigid_fit import rigid_fit, store_motion

CHANNELS = 32  # multiplied at a time
SUMS = 32  # entries that a program loads of the 20 of a part
PARTS = 64  # that are added up together


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
    limits = source.new_tensor([distance**2, usual])  # kernels take numbers in float32 alone
    parts = _parts(source)
    _add_up(source, target, source_features, target_features, T, limits, parts)
    return parts.view(-1, 20)[:, 3:].sum(0)


def align(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    T: Tensor,
    distance: float,
    usual: float,
    min_touching: int,
    count: int,
) -> Tensor:
    """What pcreg.kernels.agreement says."""
    limits = source.new_tensor([distance**2, usual])
    T, parts = T.clone(), _parts(source)
    for _ in range(count):
        _add_up(source, target, source_features, target_features, T, limits, parts)
        launch(_align, 1, (parts, T, len(parts), min_touching), {"SUMS": SUMS, "PARTS": PARTS}, None)
    return T


def _parts(source: Tensor) -> Tensor:
    return source.new_empty((-(-len(source) // QUERIES), 5, 4))


def _add_up(
    source: Tensor,
    target: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    T: Tensor,
    limits: Tensor,
    parts: Tensor,
) -> None:
    (Q, C), M = source_features.shape, len(target)
    arguments = source, target, source_features, target_features, T, limits, parts, Q, M, C
    constants = {"QUERIES": QUERIES, "POINTS": POINTS, "CHANNELS": CHANNELS}
    launch(_weighted_sums, len(parts), arguments, constants, None)


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


@triton.jit(do_not_specialize=["count", "min_touching"], do_not_specialize_on_alignment=["parts", "T"])
def _align(
    parts,  # (count, 5, 4) float64, of _weighted_sums
    T,  # (4, 4) float64, changed
    count,
    min_touching,
    SUMS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Put the motion that fits best in the place of T."""
    entry = tl.arange(0, SUMS)
    total = tl.zeros((PARTS, SUMS), tl.float64)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS)
        inside = (part < count)[:, None] & ((entry >= 3) & (entry < 20))[None, :]
        total += tl.load(parts + 20 * part.to(tl.int64)[:, None] + entry[None, :], mask=inside, other=0.0)
    sums = tl.sum(total, 0)
    w, px, py, pz = _entry(sums, 4), _entry(sums, 8), _entry(sums, 12), _entry(sums, 16)
    qx, qy, qz = _entry(sums, 5), _entry(sums, 6), _entry(sums, 7)
    xx, xy, xz = _entry(sums, 9), _entry(sums, 10), _entry(sums, 11)
    yx, yy, yz = _entry(sums, 13), _entry(sums, 14), _entry(sums, 15)
    zx, zy, zz = _entry(sums, 17), _entry(sums, 18), _entry(sums, 19)
    fit = rigid_fit(w, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, zx, zy, zz)
    r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, exists = fit
    enough = exists & (_entry(sums, 3) >= min_touching)
    store_motion(T, r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, enough)


@triton.jit
def _entry(sums, n):
    return tl.sum(tl.where(tl.arange(0, sums.shape[0]) == n, sums, 0.0), 0)
