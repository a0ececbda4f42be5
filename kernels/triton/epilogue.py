"""The end of a convolution on a GPU: sums over parts, and the epilogue, in float32, then one rounding."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.epilogue import NOTHING, VECTORS, Epilogue
from pcreg.kernels.triton.launch import launch

BLOCK_ROWS, BLOCK_COLUMNS = 32, 64


def reduce_parts(parts: Tensor, dtype: torch.dtype, epilogue: Epilogue) -> Tensor:
    """The sum of parts (S, N, M) float32, in their order, and the epilogue: (N, M) of `dtype`."""
    S, N, M = parts.shape
    if S == 1 and dtype == torch.float32 and epilogue is NOTHING:
        return parts[0]
    out = parts.new_empty((N, M), dtype=dtype)
    arguments = parts, out, *epilogue.arguments(), N, S
    constants = {"M": M, "RELU": epilogue.relu, "ROWS": BLOCK_ROWS, "COLUMNS": BLOCK_COLUMNS}
    grid = -(-N // BLOCK_ROWS) * -(-M // BLOCK_COLUMNS)
    launch(_reduce_parts, grid, arguments, constants, (M, dtype, epilogue.kind))
    return out


@triton.jit
def apply_epilogue(
    total,  # (R, COLUMNS) float32
    row,  # (R,) int64, of the result
    column,  # (COLUMNS,)
    mask,  # (R, COLUMNS)
    mean,  # (M,) or None, like the next three
    variance,
    scale,
    shift,
    epsilon,
    residual,  # (N, M) or None
    M: tl.constexpr,
    RELU: tl.constexpr,
):
    """The epilogue of a block of the result."""
    within = column < M
    if mean is not None:
        deviation = tl.sqrt(tl.load(variance + column, mask=within, other=1.0).to(tl.float32) + epsilon)
        total = (total - tl.load(mean + column, mask=within, other=0.0)[None, :]) / deviation[None, :]
    if scale is not None:
        total *= tl.load(scale + column, mask=within, other=0.0)[None, :]
    if shift is not None:
        total += tl.load(shift + column, mask=within, other=0.0)[None, :]
    if residual is not None:
        total += tl.load(residual + row[:, None] * M + column[None, :], mask=mask, other=0.0).to(tl.float32)
    if RELU:
        total = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    return total


@triton.jit(do_not_specialize=["N", "S"], do_not_specialize_on_alignment=VECTORS)
def _reduce_parts(
    parts,  # (S, N, M) float32
    out,  # (N, M)
    mean,
    variance,
    scale,
    shift,
    epsilon,
    residual,
    N,
    S,
    M: tl.constexpr,
    RELU: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    BLOCKS: tl.constexpr = (M + COLUMNS - 1) // COLUMNS
    row = (tl.program_id(0) // BLOCKS).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % BLOCKS * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row < N)[:, None] & (column < M)[None, :]
    at = row[:, None] * M + column[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for part in range(S):
        total += tl.load(parts + tl.cast(part, tl.int64) * N * M + at, mask=mask, other=0.0)
    total = apply_epilogue(total, row, column, mask, mean, variance, scale, shift, epsilon, residual, M, RELU)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=mask)
