"""MVMR with one program per chunk of a k-segment: W[k] stays on chip, rows are added by atomics.

No product is wasted on empty buckets, which pays where few of the K buckets of a row are occupied.
The order of the atomic additions, and with it the last bits of the result, changes between runs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.blocks import block, chunk_of_program
from kernels.epilogue import NOTHING, Epilogue
from kernels.finish import finish
from kernels.triplets import Triplets

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
    out = torch.zeros(triplets.n_out, G * M, dtype=torch.float32, device=features.device)
    if len(triplets) == 0 or out.numel() == 0:
        return finish(out[None], features.dtype, epilogue)
    columns = block(M, 64)
    _weight_stationary[((len(triplets) // CHUNK + K) * G * triton.cdiv(M, columns),)](
        features,
        weight,
        out,
        triplets.i,
        triplets.j,
        triplets.k_offsets,
        K,
        *weight.stride(),
        G=G,
        C=C,
        M=M,
        CELLS=triton.next_power_of_2(K),
        CHUNK=CHUNK,
        DEPTH=block(C, 32 if features.dtype == torch.float32 else 64),
        COLUMNS=columns,
        PRECISION="tf32" if tf32 else "ieee",
        num_warps=4,
        num_stages=3,
    )
    return finish(out[None], features.dtype, epilogue)


# Triplets found together begin anywhere in memory.
@triton.jit(do_not_specialize_on_alignment=["i_ptr", "j_ptr", "k_offsets"])
def _weight_stationary(
    features,  # (N_in, G C)
    weight,  # (K, G, C, M)
    out,  # (N_out, G M) float32, zero
    i_ptr,  # (T,)
    j_ptr,  # (T,)
    k_offsets,  # (K + 1,)
    K,
    k_stride,
    group_stride,
    c_stride,
    m_stride,
    G: tl.constexpr,
    C: tl.constexpr,  # of one group, like M
    M: tl.constexpr,
    CELLS: tl.constexpr,  # K, rounded up to a power of two
    CHUNK: tl.constexpr,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # Programs of one chunk are neighbours, so that the rows one has read are still in the cache for the next.
    BLOCKS: tl.constexpr = (M + COLUMNS - 1) // COLUMNS
    chunk, part = tl.program_id(0) // (G * BLOCKS), tl.program_id(0) % (G * BLOCKS)
    k, first, last = chunk_of_program(chunk, k_offsets, K, CELLS, CHUNK)
    if first >= last:
        return
    group, columns = part // BLOCKS, part % BLOCKS * COLUMNS + tl.arange(0, COLUMNS)
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
