"""The linear equations of point-to-plane ICP in one launch: many would keep the GPU waiting for the host."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.nearest import POINTS, QUERIES, nearest_of


def equations(source: Tensor, target: Tensor, normals: Tensor, T: Tensor, max_distance: float) -> Tensor:
    """What pcreg.kernels.point_to_plane says."""
    Q, M = len(source), len(target)
    rows = source.new_empty((Q, 7))
    limit = torch.full((1,), max_distance**2, dtype=torch.float64, device=T.device)
    arguments = source, target, normals, T, limit, rows, Q, M
    constants = {"QUERIES": QUERIES, "POINTS": POINTS}
    launch(_equations, -(-Q // QUERIES), arguments, constants, None)
    return rows


@triton.jit(
    do_not_specialize=["Q", "M"],
    do_not_specialize_on_alignment=["source", "target", "normals", "T", "limit", "rows"],
)
def _equations(
    source,  # (Q, 3) float64, like all of it
    target,  # (M, 3)
    normals,  # (M, 3)
    T,  # (4, 4)
    limit,  # (1,) squared metres
    rows,  # (Q, 7), out
    Q,
    M,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
):
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
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
    tl.store(rows + 7 * q, y * nz - z * ny, mask=inside)
    tl.store(rows + 7 * q + 1, z * nx - x * nz, mask=inside)
    tl.store(rows + 7 * q + 2, x * ny - y * nx, mask=inside)
    tl.store(rows + 7 * q + 3, nx, mask=inside)
    tl.store(rows + 7 * q + 4, ny, mask=inside)
    tl.store(rows + 7 * q + 5, nz, mask=inside)
    tl.store(rows + 7 * q + 6, dx * nx + dy * ny + dz * nz, mask=inside)
