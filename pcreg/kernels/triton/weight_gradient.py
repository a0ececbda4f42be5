"""VVOR on the GPU: one program per block of dW[k] and run of triplets, then a sum over the runs.

Both steps add in one order, so that the result repeats bit by bit.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.blocks import add_product, block, parts_of, power_of_two, stages, takes_parts
from pcreg.kernels.triton.launch import aligned, launch

MIN_RUN = 4096  # triplets
MAX_PARTIAL_SUMS = 2**24  # about so many floats, 64 MiB, for any number of triplets
STEP = tl.constexpr(64)  # triplets of one product
BLOCK = tl.constexpr(256)  # numbers of the gradient that a program sums


def vvor(features: Tensor, grad_out: Tensor, triplets: Triplets, dtype: torch.dtype) -> Tensor:
    """features (N_in, C), grad_out (N_out, M) of one dtype -> sums (K, 1, C, M) of x[j] g[i]^T in `dtype`."""
    K, T, C, M = triplets.n_cells, len(triplets), features.shape[1], grad_out.shape[1]
    if T == 0 or C == 0 or M == 0:
        return features.new_zeros(K, 1, C, M, dtype=dtype)
    wide = features.dtype == torch.float32
    depth, columns = block(C, 64 if wide else 128), block(M, 64 if wide else 128)
    blocks = -(-C // depth) * -(-M // columns)
    # A power of two, so that few kernels are compiled however the number of triplets varies.
    run = max(MIN_RUN, power_of_two(T * C * M // MAX_PARTIAL_SUMS + 1))
    runs = T // run + K
    partial = torch.empty((runs, C, M), dtype=torch.float32, device=features.device)
    step_bytes = STEP.value * (depth + columns) * features.itemsize
    constants = {
        "C": C,
        "M": M,
        "CELLS": power_of_two(K),
        "RUN": run,
        "DEPTH": depth,
        "COLUMNS": columns,
        "IN_PARTS": takes_parts(features.dtype, features.device),
        "STAGES": stages(2 if wide else 5, step_bytes, features.device),
    }
    arguments = aligned(features), aligned(grad_out), partial, triplets.i, triplets.j, triplets.k_offsets, K
    launch(_partial_sums, runs * blocks, arguments, constants, num_warps=4)
    out = features.new_empty((K, 1, C, M), dtype=dtype)
    size = C * M
    arguments = partial, out, triplets.k_offsets, size
    launch(_sum_runs, K * -(-size // BLOCK.value), arguments, {"RUN": run})
    return out


# Triplets of searches that ran together need not be aligned.
@triton.jit(do_not_specialize=["K"], do_not_specialize_on_alignment=["i_ptr", "j_ptr", "k_offsets"])
def _partial_sums(
    features,  # (N_in, C)
    grad_out,  # (N_out, M)
    partial,  # (runs, C, M) float32
    i_ptr,  # (T,)
    j_ptr,  # (T,)
    k_offsets,  # (K + 1,)
    K,
    C: tl.constexpr,
    M: tl.constexpr,
    CELLS: tl.constexpr,  # K, rounded up to a power of two
    RUN: tl.constexpr,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    IN_PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    # Programs of one run are neighbours, so that the rows one has read are still in the cache for the next.
    BLOCKS: tl.constexpr = (M + COLUMNS - 1) // COLUMNS
    IN_ALL: tl.constexpr = (C + DEPTH - 1) // DEPTH * BLOCKS
    run, part = tl.program_id(0) // IN_ALL, tl.program_id(0) % IN_ALL
    first, last = _triplets_of(run, k_offsets, K, CELLS, RUN)
    if first >= last:
        return
    c = part // BLOCKS * DEPTH + tl.arange(0, DEPTH)
    m = part % BLOCKS * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((DEPTH, COLUMNS), tl.float32)
    for low in tl.range(first, last, STEP, num_stages=STAGES):
        t = low + tl.arange(0, STEP)
        inside = tl.minimum(t, last - 1)
        i, j = tl.load(i_ptr + inside).to(tl.int64), tl.load(j_ptr + inside).to(tl.int64)
        x = tl.load(
            features + j[None, :] * C + c[:, None], mask=(t < last)[None, :] & (c < C)[:, None], other=0.0
        )
        g = tl.load(
            grad_out + i[:, None] * M + m[None, :], mask=(t < last)[:, None] & (m < M)[None, :], other=0.0
        )
        if IN_PARTS:
            total = add_product(total, parts_of(x), parts_of(g))
        else:
            total = tl.dot(x, g, total, input_precision="ieee")
    at = run.to(tl.int64) * C * M + c[:, None] * M + m[None, :]
    tl.store(partial + at, total, mask=(c < C)[:, None] & (m < M)[None, :])


@triton.jit
def _triplets_of(run, k_offsets, K, CELLS: tl.constexpr, RUN: tl.constexpr):
    """The triplets [first, last) of a run, at most RUN of them, all of one kernel cell.

    Cell k has the runs from k_offsets[k] // RUN + k on, which are enough for its segment wherever it begins:
    no table of runs is needed, and some runs are empty.
    """
    cells = tl.arange(0, CELLS)
    has_from = tl.load(k_offsets + cells, mask=cells < K, other=1 << 62) // RUN + cells
    k = tl.sum((has_from <= run).to(tl.int32)) - 1
    start = tl.load(k_offsets + k)
    first = start + (run - (start // RUN + k)) * RUN
    return first, tl.minimum(first + RUN, tl.load(k_offsets + k + 1))


@triton.jit(do_not_specialize=["size"], do_not_specialize_on_alignment=["k_offsets"])
def _sum_runs(partial, out, k_offsets, size, RUN: tl.constexpr):
    """out[k] (size,) = the sum of the partial sums of the runs of k, from run k_offsets[k] // RUN + k on."""
    blocks = tl.cdiv(size, BLOCK)
    k = tl.program_id(0) // blocks
    start, end = tl.load(k_offsets + k), tl.load(k_offsets + k + 1)
    at = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    partial += (start // RUN + k) * size + at
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(tl.cdiv(end - start, RUN)):
        total += tl.load(partial, mask=at < size, other=0.0)
        partial += size
    tl.store(out + k.to(tl.int64) * size + at, total.to(out.dtype.element_ty), mask=at < size)
