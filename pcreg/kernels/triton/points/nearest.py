"""The nearest point to each query, and the sums of consensus and of an ICP step, all in registers.

Limits are annotated as float64, since Triton would pass them in float32.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.blocks import three_at
from pcreg.kernels.triton.launch import launch

QUERIES, POINTS = tl.constexpr(8), tl.constexpr(128)  # of a program, and compared with them at a time
MATCHES = tl.constexpr(128)  # compared at a time
WIDTH = tl.constexpr(8)  # of the tile that holds 7 x 7 sums


def nearest_points(queries: Tensor, points: Tensor, max_distance: float) -> tuple[Tensor, Tensor]:
    """Return metres (Q,) from queries (Q, 3) to the nearest of points (M, 3), and its row (Q,) int64.

    Points and queries are float64, M >= 1. Of equally near points the first is taken. Without a point closer
    than `max_distance` the distance is inf and the row M.
    """
    Q, M = len(queries), len(points)
    distance, rows = queries.new_empty(Q), torch.empty(Q, dtype=torch.int64, device=queries.device)
    arguments = queries.contiguous(), points.contiguous(), distance, rows, max_distance, Q, M
    launch(_nearest, -(-Q // QUERIES.value), arguments, {}, num_warps=4, enable_fp_fusion=False)
    return distance, rows


@triton.jit(
    do_not_specialize=["Q", "M"], do_not_specialize_on_alignment=["queries", "points", "distance", "rows"]
)
def _nearest(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    distance,  # (Q,), out, like the next
    rows,  # (Q,)
    max_distance: tl.float64,
    Q,
    M,
):
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    x, y, z = three_at(queries + 3 * q, q < Q)
    least, first = nearest_of(points, M, x[:, None], y[:, None], z[:, None])
    least = tl.sqrt(least)
    near = least < max_distance
    tl.store(distance + q, tl.where(near, least, float("inf")), mask=q < Q)
    tl.store(rows + q, tl.where(near, first, M).to(tl.int64), mask=q < Q)


@triton.jit
def nearest_of(points, M, x, y, z):
    """Squared distance (QUERIES,) from queries (QUERIES, 1) to the nearest point, and its row."""
    best = tl.full((QUERIES, POINTS), float("inf"), tl.float64)
    best_at = tl.zeros((QUERIES, POINTS), tl.int32)
    for start in range(0, M, POINTS):
        p = start + tl.arange(0, POINTS)
        px, py, pz = three_at(points + 3 * p, p < M, other=float("inf"))
        dx, dy, dz = x - px[None, :], y - py[None, :], z - pz[None, :]
        distance = (dx * dx + dy * dy) + dz * dz
        closer = distance < best
        best = tl.where(closer, distance, best)
        best_at = tl.where(closer, p[None, :], best_at)
    least = tl.min(best, 1)
    return least, tl.min(tl.where(best == least[:, None], best_at, M), 1)


def inlier_sums(motions: Tensor, p: Tensor, q: Tensor, distance: float) -> Tensor:
    """Sums (H, 17) over the matches that motions (H, 4, 4) bring closer than `distance` metres.

    The matches are points p (3, P) with points q (3, P), all float64. The first column sums
    1 - (residual / distance)^2, the others (1, p) (1, q)^T (4, 4) by rows.
    """
    sums = p.new_empty((len(motions), 17))
    arguments = motions, p, q, sums, distance**2, p.shape[1]
    launch(_inlier_sums, len(motions), arguments, {}, num_warps=4)
    return sums


@triton.jit(do_not_specialize=["P"], do_not_specialize_on_alignment=["motions", "p", "q", "sums"])
def _inlier_sums(
    motions,  # (H, 4, 4) float64, like all arrays
    p,  # (3, P)
    q,  # (3, P)
    sums,  # (H, 17), out
    most: tl.float64,  # squared metres
    P,
):
    h = tl.program_id(0).to(tl.int64)
    T = motions + 16 * h
    score = tl.zeros((MATCHES,), tl.float64)
    total = tl.zeros((MATCHES, 4, 4), tl.float64)
    for start in range(0, P, MATCHES):
        i = start + tl.arange(0, MATCHES)
        px, py, pz = three_at(p + i, i < P, P)
        qx, qy, qz = three_at(q + i, i < P, P)
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
def _with_one(x, y, z):
    """Rows (MATCHES, 4) of 1, x, y, z."""
    column = tl.arange(0, 4)[None, :]
    row = tl.where(column == 1, x[:, None], 1.0)
    row = tl.where(column == 2, y[:, None], row)
    return tl.where(column == 3, z[:, None], row)


def step_sums(
    sources: Tensor,
    upright: Tensor,
    target: Tensor,
    normals: Tensor,
    motions: Tensor,
    max_distance: float,
    scale: float,
    min_cosine: float,
) -> Tensor:
    """Sums (H, 7, 7) of (J, r)^T (J, r) over the points of each source (H, N, 3) with a target point nearby.

    Each source, with unit normals `upright` (H, N, 3), is moved by its motion (4, 4). A point adds a row if
    the nearest target point (M, 3) is closer than `max_distance`, and the cosine of their normals, of either
    sign, is `min_cosine` or more. n is the mean of both normals, r the offset to the target point along n,
    and J (6,) the derivative of the moved point along n, rotation first. The row is divided by
    sqrt(1 + (r / scale)^2). All arrays are float64; the order of the sum is fixed.
    """
    tensors = [each.contiguous() for each in (sources, upright, target, normals, motions)]
    H, N, _ = sources.shape
    programs = -(-N // QUERIES.value)
    parts = sources.new_empty((H, programs, WIDTH.value, WIDTH.value))
    arguments = *tensors, parts, max_distance**2, scale, min_cosine, N, len(target), programs
    launch(_step_sums, H * programs, arguments, {})
    return parts.sum(1)[:, :7, :7]


@triton.jit(
    do_not_specialize=["Q", "M", "programs"],
    do_not_specialize_on_alignment=["sources", "upright", "target", "normals", "motions", "parts"],
)
def _step_sums(
    sources,  # (H, Q, 3) float64, like all arrays
    upright,  # (H, Q, 3)
    target,  # (M, 3)
    normals,  # (M, 3)
    motions,  # (H, 4, 4)
    parts,  # (H, programs, WIDTH, WIDTH), out
    most: tl.float64,  # squared metres
    scale: tl.float64,
    min_cosine: tl.float64,
    Q,
    M,
    programs,  # for each source
):
    program = tl.program_id(0).to(tl.int64)
    h = program // programs
    source, T = sources + 3 * h * Q, motions + 16 * h
    q = (program % programs) * QUERIES + tl.arange(0, QUERIES)
    inside = q < Q
    sx, sy, sz = three_at(source + 3 * q, inside)
    x = tl.load(T) * sx + tl.load(T + 1) * sy + tl.load(T + 2) * sz + tl.load(T + 3)
    y = tl.load(T + 4) * sx + tl.load(T + 5) * sy + tl.load(T + 6) * sz + tl.load(T + 7)
    z = tl.load(T + 8) * sx + tl.load(T + 9) * sy + tl.load(T + 10) * sz + tl.load(T + 11)
    least, partner = nearest_of(target, M, x[:, None], y[:, None], z[:, None])
    near = inside & (least < most)
    sx, sy, sz = three_at(upright + 3 * (h * Q + q), inside)
    ux = tl.load(T) * sx + tl.load(T + 1) * sy + tl.load(T + 2) * sz
    uy = tl.load(T + 4) * sx + tl.load(T + 5) * sy + tl.load(T + 6) * sz
    uz = tl.load(T + 8) * sx + tl.load(T + 9) * sy + tl.load(T + 10) * sz
    nx, ny, nz = three_at(normals + 3 * partner, near)
    cosine = ux * nx + uy * ny + uz * nz
    sign = tl.where(cosine < 0, -1.0, 1.0).to(tl.float64)
    nx, ny, nz = nx + sign * ux, ny + sign * uy, nz + sign * uz
    tx, ty, tz = three_at(target + 3 * partner, near)
    dx, dy, dz = tx - x, ty - y, tz - z
    length = tl.sqrt(2 + 2 * tl.abs(cosine))
    offset = (dx * nx + dy * ny + dz * nz) / (length * scale)
    counts = near & (tl.abs(cosine) >= min_cosine)
    weight = tl.where(counts, 1 / (length * tl.sqrt(1 + offset * offset)), 0.0)
    nx, ny, nz = weight * nx, weight * ny, weight * nz
    column = tl.arange(0, WIDTH)[None, :]
    row = tl.where(column == 0, (y * nz - z * ny)[:, None], 0.0)
    row = tl.where(column == 1, (z * nx - x * nz)[:, None], row)
    row = tl.where(column == 2, (x * ny - y * nx)[:, None], row)
    row = tl.where(column == 3, nx[:, None], row)
    row = tl.where(column == 4, ny[:, None], row)
    row = tl.where(column == 5, nz[:, None], row)
    row = tl.where(column == 6, (dx * nx + dy * ny + dz * nz)[:, None], row)
    at = WIDTH * tl.arange(0, WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
    tl.store(parts + program * WIDTH * WIDTH + at, tl.sum(row[:, :, None] * row[:, None, :], 0))
