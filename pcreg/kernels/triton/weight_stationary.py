"""MVMR with one program per chunk of a k-segment: W[k] stays on chip, rows are added by atomics.

No product is wasted on empty buckets, which pays where few of the K buckets of a row are occupied.
The order of the atomic additions, and with it the last bits of the result, changes between runs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.blocks import block, chunk_of_program, power_of_two
from pcreg.kernels.triton.epilogue import reduce_parts
from pcreg.kernels.triton.launch import launch, specialization

CHUNK = 64  # triplets of a program


def mvmr(
    features: Tensor,
    weight: Tensor,
    triplets: Triplets,
    tf32: bool = False,
    epilogue: Epilogue = NOTHING,
) -> Tensor:
    """features (N_in, C), weight (K, G, C/G, M/G) with any strides -> (N_out, M), row i the sum of W[k] x[j].

    Sums are float32: half-precision features take a float32 (N_out, M) beside the result.
    """
    K, G, C, M = weight.shape
    T = triplets.i.shape[0]
    out = torch.zeros((1, triplets.n_out, G * M), dtype=torch.float32, device=features.device)
    columns = block(M, 64)
    wide = features.dtype == torch.float32
    constants = {
        "G": G,
        "C": C,
        "CELLS": power_of_two(K),
        "CHUNK": CHUNK,
        "DEPTH": block(C, 32 if wide else 64),
        "COLUMNS": columns,
        "PRECISION": "tf32" if tf32 else "ieee",
    }
    grid = (T // CHUNK + K) * G * -(-M // columns) if T and G * M else 0
    sizes = K, M, *weight.stride()
    arguments = features, weight, out, triplets.i, triplets.j, triplets.k_offsets, *sizes
    variant = *constants.values(), specialization(*sizes), weight.data_ptr() % 16 == 0, features.dtype
    launch(_weight_stationary, grid, arguments, constants, variant, num_warps=4, num_stages=3)
    return reduce_parts(out, features.dtype, epilogue)


# Triplets found together begin anywhere in memory. M is no constant: one kernel serves several layers.
@triton.jit(do_not_specialize_on_alignment=["i_ptr", "j_ptr", "k_offsets"])
def _weight_stationary(
    features,  # (N_in, G C)
    weight,  # (K, G, C, M)
    out,  # (N_out, G M) float32, zero
    i_ptr,  # (T,)
    j_ptr,  # (T,)
    k_offsets,  # (K + 1,)
    K,
    M,
    k_stride,
    group_stride,
    c_stride,
    m_stride,
    G: tl.constexpr,
    C: tl.constexpr,  # of one group, like M
    CELLS: tl.constexpr,  # K, rounded up to a power of two
    CHUNK: tl.constexpr,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # Programs of one chunk are neighbours, so that the rows one has read are still in the cache for the next.
    blocks = tl.cdiv(M, COLUMNS)
    chunk, part = tl.program_id(0) // (G * blocks), tl.program_id(0) % (G * blocks)
    k, first, last = chunk_of_program(chunk, k_offsets, K, CELLS, CHUNK)
    if first >= last:
        return
    group, columns = part // blocks, part % blocks * COLUMNS + tl.arange(0, COLUMNS)
    t = first + tl.arange(0, CHUNK)
    inside = tl.minimum(t, last - 1)
    i, j = tl.load(i_ptr + inside).to(tl.int64), tl.load(j_ptr + inside).to(tl.int64)
    weight += k.to(tl.int64) * k_stride + group * group_stride
    total = tl.zeros((CHUNK, COLUMNS), tl.float32)
    for depth in tl.range(0, C, DEPTH):
        c = depth + tl.arange(0, DEPTH)
        x = tl.load(
            features + j[:, None] * (G * C) + group * C + c[None, :], mask=(c < C)[None, :], other=0.0
        )
        w = tl.load(
            weight + c[:, None] * c_stride + columns[None, :] * m_stride,
            mask=(c < C)[:, None] & (columns < M)[None, :],
            other=0.0,
        )
        total = tl.dot(x, w, total, input_precision=PRECISION)
    tl.atomic_add(
        out + i[:, None] * (G * M) + group * M + columns[None, :],
        total,
        mask=(t < last)[:, None] & (columns < M)[None, :],
        sem="relaxed",
    )
