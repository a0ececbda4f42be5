"""MVMR as section H.2 of the paper lays it out: one matrix-vector product and atomic sum per triplet.

Written from the paper's description, as a baseline; nothing but the benchmark uses it.
"""

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triplets import Triplets


def program_per_triplet(features: Tensor, weight: Tensor, triplets: Triplets) -> Callable[[], Tensor]:
    k = triplets.cell_of_triplets().int()
    C, M = weight.shape[2:]

    def run() -> Tensor:
        out = torch.zeros(triplets.n_out, M, device=features.device)
        block = min(triton.next_power_of_2(M), 128)
        grid = (len(triplets), triton.cdiv(M, block))
        _per_triplet[grid](
            features, weight, out, triplets.i, triplets.j, k, C, M, triton.next_power_of_2(C), block
        )
        return out.to(features.dtype)

    return run


@triton.jit
def _per_triplet(
    features,  # (N_in, C)
    weight,  # (K, 1, C, M)
    out,  # (N_out, M) float32
    i_ptr,  # (T,) and so the next two
    j_ptr,
    k_ptr,
    C,
    M,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    t = tl.program_id(0)
    i, j, k = tl.load(i_ptr + t).to(tl.int64), tl.load(j_ptr + t).to(tl.int64), tl.load(k_ptr + t)
    m = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    c = tl.arange(0, DEPTH)
    x = tl.load(features + j * C + c, mask=c < C, other=0.0).to(tl.float32)
    inside = (c < C)[:, None] & (m < M)[None, :]
    w = tl.load(weight + k * C * M + c[:, None] * M + m[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(out + i * M + m, tl.sum(x[:, None] * w, 0), mask=m < M, sem="relaxed")
