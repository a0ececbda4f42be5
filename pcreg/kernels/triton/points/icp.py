"""The sums of one step of point-to-plane ICP: each program adds up the equations of a few points."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.points.nearest import POINTS, QUERIES, nearest_of

WIDTH = 8  # of the tile with seven sums by seven


def step_sums(source: Tensor, target: Tensor, normals: Tensor, T: Tensor, max_distance: float) -> Tensor:
    """Sums (7, 7) of (J, r)^T (J, r) over the source points (N, 3) with a target point nearby.

    J (K, 6) and r (K,) are the Jacobian rows and the offsets of source points, moved by T (4, 4), from the
    planes of their nearest target points (M, 3) with these normals (M, 3), where these are closer than
    `max_distance`. All float64; added up in an order that does not change.
    """
    source, target, normals = (rows.contiguous() for rows in (source, target, normals))
    programs = -(-len(source) // QUERIES)
    parts = source.new_empty((programs, WIDTH, WIDTH))
    limit = torch.full((1,), max_distance**2, dtype=torch.float64, device=source.device)  # not float32
    arguments = source, target, normals, T, limit, parts, len(source), len(target)
    constants = {"WIDTH": WIDTH, "QUERIES": QUERIES, "POINTS": POINTS}
    launch(_step_sums, programs, arguments, constants, None)
    return parts.sum(0)[:7, :7]


@triton.jit(
    do_not_specialize=["Q", "M"],
    do_not_specialize_on_alignment=["source", "target", "normals", "T", "limit", "parts"],
)
def _step_sums(
    source,  # (Q, 3) float64, like all of it
    target,  # (M, 3)
    normals,  # (M, 3)
    T,  # (4, 4)
    limit,  # (1,) squared metres
    parts,  # (programs, WIDTH, WIDTH), out
    Q,
    M,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
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
    least, partner = nearest_of(target, M, x[:, None], y[:, None], z[:, None], QUERIES, POINTS)
    near = inside & (least < tl.load(limit))
    nx = tl.load(normals + 3 * partner, mask=near, other=0.0)
    ny = tl.load(normals + 3 * partner + 1, mask=near, other=0.0)
    nz = tl.load(normals + 3 * partner + 2, mask=near, other=0.0)
    dx = tl.load(target + 3 * partner, mask=near, other=0.0) - x
    dy = tl.load(target + 3 * partner + 1, mask=near, other=0.0) - y
    dz = tl.load(target + 3 * partner + 2, mask=near, other=0.0) - z
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
