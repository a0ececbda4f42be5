"""The end of a convolution on a GPU: sums over parts and the epilogue, in float32, then one rounding.

The parts to apply are an argument, so that a convolution is compiled once for all combinations. Tensors of
parts that are left out are not read.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.triton.launch import aligned, launch

ROWS, COLUMNS = tl.constexpr(32), tl.constexpr(64)  # of a program
VECTORS = ["mean", "variance", "scale", "shift"]  # (M,), arguments of kernels
NORM, SHIFT, RESIDUAL, RELU = (tl.constexpr(1 << bit) for bit in range(4))  # parts of an epilogue


def reduce_parts(parts: Tensor, dtype: torch.dtype, epilogue: Epilogue) -> Tensor:
    """Sum parts (S, N, M) float32 in their order and apply the epilogue: (N, M) of `dtype`."""
    S, N, M = parts.shape
    out = parts.new_empty((N, M), dtype=dtype)
    ending = epilogue_arguments(epilogue, out)
    constants = {"EPILOGUE": epilogue is not NOTHING}
    grid = -(-N // ROWS.value) * -(-M // COLUMNS.value)
    launch(_reduce_parts, grid, (parts, out, *ending, N, S, M), constants, specialized=(M,))
    return out


def epilogue_arguments(epilogue: Epilogue, out: Tensor, apply: bool = True) -> tuple:
    """Arguments of `apply_epilogue` after its mask; without `apply` no part is applied.

    Missing tensors are replaced by others, which the kernel does not read.
    """
    if epilogue is NOTHING:
        return *[None] * 4, 0.0, None, 0
    norm, residual = epilogue.norm, epilogue.residual
    vectors, epsilon = [None, None, None, epilogue.bias], 0.0
    if norm is not None:
        vectors, epsilon = [norm.running_mean, norm.running_var, norm.weight, norm.bias], norm.eps
    applied = 0
    if apply:
        tensors = (NORM, norm), (SHIFT, vectors[3]), (RESIDUAL, residual)
        applied = sum(part.value for part, tensor in tensors if tensor is not None)
        applied += RELU.value if epilogue.relu else 0
    spare = next((vector for vector in vectors if vector is not None), out)
    vectors = [spare if vector is None else vector for vector in vectors]
    return *vectors, epsilon, out if residual is None else aligned(residual), applied


@triton.jit
def apply_epilogue(
    total,  # (R, COLUMNS) float32
    row,  # (R,) int64, of the result
    column,  # (COLUMNS,)
    mask,  # (R, COLUMNS)
    mean,  # (M,), like the next three
    variance,
    scale,
    shift,
    epsilon,
    residual,  # (N, M)
    applied,  # sum of NORM ... RELU
    M,
):
    """Apply the epilogue to a block of the result."""
    normed = (column < M) & ((applied & NORM) != 0)
    deviation = tl.sqrt(tl.load(variance + column, mask=normed, other=1.0).to(tl.float32) + epsilon)
    total = (total - tl.load(mean + column, mask=normed, other=0.0)[None, :]) / deviation[None, :]
    total *= tl.load(scale + column, mask=normed, other=1.0)[None, :]
    shifted = (column < M) & ((applied & SHIFT) != 0)
    total += tl.load(shift + column, mask=shifted, other=0.0)[None, :]
    at = residual + row[:, None] * M + column[None, :]
    total += tl.load(at, mask=mask & ((applied & RESIDUAL) != 0), other=0.0).to(tl.float32)
    positive = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    return tl.where((applied & RELU) != 0, positive, total)


# Compiled separately for M a multiple of 16 and for other M.
@triton.jit(do_not_specialize=["applied", "N", "S"], do_not_specialize_on_alignment=VECTORS)
def _reduce_parts(
    parts,  # (S, N, M) float32
    out,  # (N, M)
    mean,
    variance,
    scale,
    shift,
    epsilon,
    residual,
    applied,
    N,
    S,
    M,
    EPILOGUE: tl.constexpr,
):
    blocks = tl.cdiv(M, COLUMNS)
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row < N)[:, None] & (column < M)[None, :]
    at = row[:, None] * M + column[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for part in range(S):
        total += tl.load(parts + tl.cast(part, tl.int64) * N * M + at, mask=mask, other=0.0)
    if EPILOGUE:
        total = apply_epilogue(
            total, row, column, mask, mean, variance, scale, shift, epsilon, residual, applied, M
        )
    tl.store(out + at, total.to(out.dtype.element_ty), mask=mask)
