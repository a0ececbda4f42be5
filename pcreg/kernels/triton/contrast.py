"""The sums of kernels/contrast.py on a GPU: similarities block by block, forward and again backward.

A program takes some rows and a share of the columns. What the shares found is added up in their order, so
that sums and gradients repeat bit by bit.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.alignment import aligned
from pcreg.kernels.samples import IGNORED, Samples
from pcreg.kernels.triton.blocks import MIN_BLOCK, power_of_two
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.precision import add_product, parts_of, takes_parts

BLOCK = 64  # rows of a program, and columns at a time
SHARES = 4  # of the columns: 8,192 rows alone would leave a GPU half empty
PLACES = ["row_points", "row_cloud", "column_points", "column_cloud"]


def logsumexp_apart(queries: Samples, keys: Samples, radius: float, matched: bool) -> Tensor:
    """What pcreg.kernels.contrast.logsumexp_apart says."""
    places = [each.contiguous() for side in (queries, keys) for each in (side.points, side.cloud)]
    return _LogSumExp.apply(queries.features, keys.features, *places, radius, matched)


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, queries, keys, query_points, query_cloud, key_points, key_cloud, radius, matched):
        queries, keys = aligned(queries), aligned(keys)
        places = query_points, query_cloud, key_points, key_cloud
        S, K = len(queries), len(keys)
        parts = queries.new_empty((SHARES, S))
        arguments = queries, keys, *places, parts, S, K, radius * radius
        constants = _constants(queries, matched) | {"IGNORED": IGNORED}
        launch(_logsumexp, -(-S // BLOCK) * SHARES, arguments, constants, tuple(constants.values()))
        sums = parts.logsumexp(0)
        ctx.save_for_backward(queries, keys, *places, sums)
        ctx.radius, ctx.matched = radius, matched
        return sums

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        queries, keys, *places, sums = ctx.saved_tensors
        grad = aligned(grad)
        grad_queries = grad_keys = None
        if ctx.needs_input_grad[0]:
            grad_queries = _gradient(queries, keys, places, sums, grad, ctx, of_queries=True)
        if ctx.needs_input_grad[1]:
            places = *places[2:], *places[:2]
            grad_keys = _gradient(keys, queries, places, sums, grad, ctx, of_queries=False)
        return grad_queries, grad_keys, *[None] * 6


def _gradient(rows, columns, places, sums, grad, ctx, of_queries: bool) -> Tensor:
    """The gradient (R, C) of the features `rows`, which are the queries' or else the keys'."""
    R, C = rows.shape
    parts = rows.new_empty((SHARES, R, C))
    arguments = rows, columns, *places, sums, grad, parts, R, len(columns), ctx.radius * ctx.radius
    constants = _constants(rows, ctx.matched) | {"OF_QUERIES": of_queries}
    launch(_gradients, -(-R // BLOCK) * SHARES, arguments, constants, tuple(constants.values()))
    return parts.sum(0)


def _constants(features: Tensor, matched: bool) -> dict[str, object]:
    C = features.shape[1]
    return {
        "C": C,
        "DEPTH": max(MIN_BLOCK, power_of_two(C)),
        "BLOCK": BLOCK,
        "SHARES": SHARES,
        "MATCHED": matched,
        "IN_PARTS": takes_parts(features.dtype, False, features.device),
    }


@triton.jit
def _features(features, row, n, C: tl.constexpr, DEPTH: tl.constexpr):
    """Rows (BLOCK, DEPTH) of the features (n, C), zero where there is none."""
    c = tl.arange(0, DEPTH)
    at = row.to(tl.int64)[:, None] * C + c[None, :]
    return tl.load(features + at, mask=(row < n)[:, None] & (c < C)[None, :], other=0.0)


@triton.jit
def _product(x, y, IN_PARTS: tl.constexpr):
    """x (R, D) @ y (D, M) in float32."""
    if IN_PARTS:
        total = tl.zeros((x.shape[0], y.shape[1]), tl.float32)
        product = add_product(total, parts_of(x), parts_of(y))
    else:
        product = tl.dot(x, y, input_precision="ieee")
    return product


@triton.jit
def _place(points, cloud, n, count):
    """x, y, z and the cloud of some points."""
    x = tl.load(points + 3 * n, mask=n < count, other=0.0)
    y = tl.load(points + 3 * n + 1, mask=n < count, other=0.0)
    z = tl.load(points + 3 * n + 2, mask=n < count, other=0.0)
    return x, y, z, tl.load(cloud + n, mask=n < count, other=-1)


@triton.jit
def _are_near(row, row_place, column, column_place, radius_squared, MATCHED: tl.constexpr):
    """Which rows and columns (R, M) lie next to one another."""
    x, y, z, cloud = row_place
    other_x, other_y, other_z, other_cloud = column_place
    dx, dy, dz = x[:, None] - other_x[None, :], y[:, None] - other_y[None, :], z[:, None] - other_z[None, :]
    near = (dx * dx + dy * dy + dz * dz < radius_squared) & (cloud[:, None] == other_cloud[None, :])
    if MATCHED:
        near = near & (row[:, None] != column[None, :])
    return near


@triton.jit
def _compared(
    x,
    row,
    place,
    columns,
    points,
    cloud,
    column,
    count,
    radius_squared,
    C: tl.constexpr,
    DEPTH: tl.constexpr,
    MATCHED: tl.constexpr,
    IN_PARTS: tl.constexpr,
):
    """Of some columns the features, their similarities with the rows (R, M), and which of them are near."""
    y, other = _features(columns, column, count, C, DEPTH), _place(points, cloud, column, count)
    near = _are_near(row, place, column, other, radius_squared, MATCHED)
    return y, _product(x, tl.trans(y), IN_PARTS), near


@triton.jit(do_not_specialize=["S", "K", "radius_squared"], do_not_specialize_on_alignment=PLACES)
def _logsumexp(
    queries,  # (S, C)
    keys,  # (K, C)
    row_points,  # (S, 3)
    row_cloud,  # (S,)
    column_points,  # (K, 3)
    column_cloud,  # (K,)
    out,  # (SHARES, S), of each share of the keys
    S,
    K,
    radius_squared,
    C: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARES: tl.constexpr,
    MATCHED: tl.constexpr,
    IN_PARTS: tl.constexpr,
    IGNORED: tl.constexpr,
):
    row, share = tl.program_id(0) // SHARES * BLOCK + tl.arange(0, BLOCK), tl.program_id(0) % SHARES
    x, place = _features(queries, row, S, C, DEPTH), _place(row_points, row_cloud, row, S)
    largest, total = tl.full((BLOCK,), float("-inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for low in range(share * BLOCK, K, SHARES * BLOCK):
        column = low + tl.arange(0, BLOCK)
        where = column_points, column_cloud, column, K, radius_squared
        _, logits, near = _compared(x, row, place, keys, *where, C, DEPTH, MATCHED, IN_PARTS)
        logits = tl.where(near, IGNORED, logits)
        logits = tl.where((column < K)[None, :], logits, float("-inf"))
        above = tl.maximum(largest, tl.max(logits, 1))
        total = total * tl.exp(largest - above) + tl.sum(tl.exp(logits - above[:, None]), 1)
        largest = above
    # A share without keys, of a sum of nothing
    found = tl.where(total > 0, largest + tl.log(tl.where(total > 0, total, 1.0)), float("-inf"))
    tl.store(out + share * S + row, found, mask=row < S)


@triton.jit
def _of_queries(sums, grad, n, count):
    """The sum of each of some queries, and the gradient of it."""
    return tl.load(sums + n, mask=n < count, other=0.0), tl.load(grad + n, mask=n < count, other=0.0)


@triton.jit(do_not_specialize=["R", "M", "radius_squared"], do_not_specialize_on_alignment=PLACES)
def _gradients(
    rows,  # (R, C), the queries, or the keys
    columns,  # (M, C), the others
    row_points,  # (R, 3)
    row_cloud,  # (R,)
    column_points,  # (M, 3)
    column_cloud,  # (M,)
    sums,  # of the queries, like the next
    grad,
    out,  # (SHARES, R, C), of each share of the columns
    R,
    M,
    radius_squared,
    C: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARES: tl.constexpr,
    MATCHED: tl.constexpr,
    IN_PARTS: tl.constexpr,
    OF_QUERIES: tl.constexpr,
):
    row, share = tl.program_id(0) // SHARES * BLOCK + tl.arange(0, BLOCK), tl.program_id(0) % SHARES
    x, place = _features(rows, row, R, C, DEPTH), _place(row_points, row_cloud, row, R)
    total = tl.zeros((BLOCK, DEPTH), tl.float32)
    for low in range(share * BLOCK, M, SHARES * BLOCK):
        column = low + tl.arange(0, BLOCK)
        where = column_points, column_cloud, column, M, radius_squared
        y, logits, near = _compared(x, row, place, columns, *where, C, DEPTH, MATCHED, IN_PARTS)
        if OF_QUERIES:
            whole, slope = _of_queries(sums, grad, row, R)
            whole, slope = whole[:, None], slope[:, None]
        else:
            whole, slope = _of_queries(sums, grad, column, M)
            whole, slope = whole[None, :], slope[None, :]
        counts = (row < R)[:, None] & (column < M)[None, :] & ~near
        weight = tl.where(counts, tl.exp(tl.where(counts, logits - whole, 0.0)) * slope, 0.0)
        total += _product(weight, y, IN_PARTS)
    c = tl.arange(0, DEPTH)
    at = (share * R + row).to(tl.int64)[:, None] * C + c[None, :]
    tl.store(out + at, total, mask=(row < R)[:, None] & (c < C)[None, :])
