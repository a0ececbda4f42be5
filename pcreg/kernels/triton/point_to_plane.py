"""Point-to-plane ICP by two kernels an iteration, one of which solves its equations.

Each program of the first adds up the equations of a few points. The second is one program: it adds up those
sums, in an order that never changes, and takes the step.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.points.nearest import POINTS, QUERIES, nearest_of

WIDTH = 8  # of the tile that holds seven sums by seven
PARTS = 64  # added up at a time


def normal_equations(
    source: Tensor, target: Tensor, normals: Tensor, T: Tensor, max_distance: float
) -> Tensor:
    """What pcreg.kernels.point_to_plane says."""
    state = torch.cat([T.reshape(-1), T.new_zeros(2)])
    parts = _parts(source)
    _add_up(source, target, normals, state, state.new_full((1,), max_distance**2), parts)
    return parts.sum(0)[:7, :7]


def iterate(
    source: Tensor,
    target: Tensor,
    normals: Tensor,
    state: Tensor,
    limits: tuple[float, float, float, float],
    count: int,
) -> Tensor:
    """What pcreg.kernels.point_to_plane says."""
    max_distance, *others = limits
    most = state.new_tensor([max_distance**2, *others])  # kernels take numbers in float32 alone
    state, parts = state.clone(), _parts(source)
    constants = {"WIDTH": WIDTH, "PARTS": PARTS}
    for _ in range(count):
        _add_up(source, target, normals, state, most, parts)
        launch(_step, 1, (parts, most, state, len(parts)), constants, None)
    return state


def _parts(source: Tensor) -> Tensor:
    return source.new_empty((-(-len(source) // QUERIES), WIDTH, WIDTH))


def _add_up(
    source: Tensor, target: Tensor, normals: Tensor, state: Tensor, most: Tensor, parts: Tensor
) -> None:
    arguments = source, target, normals, state, most, parts, len(source), len(target)
    constants = {"WIDTH": WIDTH, "QUERIES": QUERIES, "POINTS": POINTS}
    launch(_equations, len(parts), arguments, constants, None)


@triton.jit(
    do_not_specialize=["Q", "M"],
    do_not_specialize_on_alignment=["source", "target", "normals", "state", "most", "parts"],
)
def _equations(
    source,  # (Q, 3) float64, like all of it
    target,  # (M, 3)
    normals,  # (M, 3)
    state,  # (18,): T (4, 4), the outcome, the number of steps
    most,  # the first: squared metres
    parts,  # (programs, WIDTH, WIDTH), out
    Q,
    M,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
):
    if tl.load(state + 16) == 0:
        program = tl.program_id(0).to(tl.int64)
        q = program * QUERIES + tl.arange(0, QUERIES)
        inside = q < Q
        sx = tl.load(source + 3 * q, mask=inside, other=0.0)
        sy = tl.load(source + 3 * q + 1, mask=inside, other=0.0)
        sz = tl.load(source + 3 * q + 2, mask=inside, other=0.0)
        x = tl.load(state) * sx + tl.load(state + 1) * sy + tl.load(state + 2) * sz + tl.load(state + 3)
        y = tl.load(state + 4) * sx + tl.load(state + 5) * sy + tl.load(state + 6) * sz + tl.load(state + 7)
        z = tl.load(state + 8) * sx + tl.load(state + 9) * sy + tl.load(state + 10) * sz + tl.load(state + 11)
        least, partner = nearest_of(target, M, x[:, None], y[:, None], z[:, None], QUERIES, POINTS)
        near = inside & (least < tl.load(most))
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
        total = tl.sum(row[:, :, None] * row[:, None, :], 0)
        at = WIDTH * tl.arange(0, WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
        tl.store(parts + program * WIDTH * WIDTH + at, total)


@triton.jit(
    do_not_specialize=["count"],
    do_not_specialize_on_alignment=["parts", "most", "state"],
)
def _step(
    parts,  # (count, WIDTH, WIDTH) float64, like all of it
    most,  # (4,): the Limits, the first squared
    state,  # (18,), changed
    count,
    WIDTH: tl.constexpr,
    PARTS: tl.constexpr,
):
    if tl.load(state + 16) == 0:
        entry = tl.arange(0, WIDTH * WIDTH)
        total = tl.zeros((PARTS, WIDTH * WIDTH), tl.float64)
        for start in range(0, count, PARTS):
            part = start + tl.arange(0, PARTS)
            at = part.to(tl.int64)[:, None] * (WIDTH * WIDTH) + entry[None, :]
            total += tl.load(parts + at, mask=part[:, None] < count, other=0.0)
        sums = tl.reshape(tl.sum(total, 0), (WIDTH, WIDTH))
        # Gauss and Jordan: rows of [A | b] and of the identity become those of x and of the inverse.
        row, column = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
        left = tl.where(row[:, None] < 6, sums, 0.0)
        inverse = tl.where(row[:, None] == column[None, :], 1.0, tl.zeros((WIDTH, WIDTH), tl.float64))
        diagonal = (row[:, None] == column[None, :]) & (row[:, None] < 6)
        trace = tl.sum(tl.where(diagonal, left, 0.0))
        positive = trace > 0
        for n in tl.static_range(6):
            is_n = row[:, None] == n
            row_left, row_inverse = (
                tl.sum(tl.where(is_n, left, 0.0), 0),
                tl.sum(tl.where(is_n, inverse, 0.0), 0),
            )
            pivot = tl.sum(tl.where(column == n, row_left, 0.0))
            positive = positive & (pivot > 0)
            factor = tl.sum(tl.where(column[None, :] == n, left, 0.0), 1)
            factor = tl.where(row == n, pivot - 1, factor) / tl.where(pivot > 0, pivot, 1.0)
            left -= factor[:, None] * row_left[None, :]
            inverse -= factor[:, None] * row_inverse[None, :]
        condition = trace * tl.sum(tl.where(diagonal, inverse, 0.0))
        if positive & (condition < tl.load(most + 3)):
            solution = tl.sum(tl.where(column[None, :] == 6, left, 0.0), 1)
            _move(state, most, row, solution)
        else:
            tl.store(state + 16, 2.0)


@triton.jit
def _move(state, most, row, solution):
    """Of a small rotation and translation, entries 0 to 2 and 3 to 5 of the `solution`: T after them."""
    wx, wy, wz = _entry(solution, row, 0), _entry(solution, row, 1), _entry(solution, row, 2)
    tx, ty, tz = _entry(solution, row, 3), _entry(solution, row, 4), _entry(solution, row, 5)
    angle = tl.sqrt(wx * wx + wy * wy + wz * wz)
    # Rodrigues: R = I + a [w] + b [w]^2
    small = angle < 1e-9
    divisor = tl.where(small, 1.0, angle)
    half = tl.sin(divisor / 2) / divisor
    a, b = tl.where(small, 1.0, tl.sin(divisor) / divisor), tl.where(small, 0.5, 2 * half * half)
    r00, r11, r22 = 1 - b * (wy * wy + wz * wz), 1 - b * (wx * wx + wz * wz), 1 - b * (wx * wx + wy * wy)
    r01, r10 = b * wx * wy - a * wz, b * wx * wy + a * wz
    r02, r20 = b * wx * wz + a * wy, b * wx * wz - a * wy
    r12, r21 = b * wy * wz - a * wx, b * wy * wz + a * wx
    column = tl.arange(0, 4)
    t0, t1, t2 = tl.load(state + column), tl.load(state + 4 + column), tl.load(state + 8 + column)
    tl.debug_barrier()
    is_last = column == 3
    tl.store(state + column, r00 * t0 + r01 * t1 + r02 * t2 + tl.where(is_last, tx, 0.0))
    tl.store(state + 4 + column, r10 * t0 + r11 * t1 + r12 * t2 + tl.where(is_last, ty, 0.0))
    tl.store(state + 8 + column, r20 * t0 + r21 * t1 + r22 * t2 + tl.where(is_last, tz, 0.0))
    length = tl.load(most + 1) * angle + tl.sqrt(tx * tx + ty * ty + tz * tz)
    tl.store(state + 16, tl.where(length < tl.load(most + 2), 1.0, 0.0))
    tl.store(state + 17, tl.load(state + 17) + 1)


@triton.jit
def _entry(solution, row, n):
    return tl.sum(tl.where(row == n, solution, 0.0))
