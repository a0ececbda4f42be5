"""MVMR and VVOR in plain PyTorch, for the CPU, and for float64 on any device.

For each kernel cell the features of a bucket (k, i) are summed, multiplied by W[k] once, and added to row i,
which occurs once per cell: the result does not depend on the order of threads. The bucket sums of one cell
exist at a time.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from pcreg.kernels.triplets import Buckets, Triplets

MIN_ROWS = 16  # with fewer, MKL adds up in another order: a small cloud would depend on its batch


def mvmr(features: Tensor, weight: Tensor, triplets: Triplets, buckets: Buckets) -> Tensor:
    """features (N_in, C), weight (K, 1, C, M) of one dtype -> (N_out, M), row i the sum of W[k] x[j]."""
    out = features.new_zeros(triplets.n_out, weight.shape[3])
    for k, (i, sums) in enumerate(_bucket_sums(features, triplets, buckets)):
        out.index_add_(0, i, _multiply(sums, weight[k]))
    return out


def vvor(features: Tensor, grad_out: Tensor, triplets: Triplets, buckets: Buckets) -> Tensor:
    """features (N_in, C), grad_out (N_out, M) of one dtype -> (K, 1, C, M), the sums of x[j] g[i]^T."""
    grads = [
        torch.bmm(sums[None].mT, grad_out.index_select(0, i)[None])
        for i, sums in _bucket_sums(features, triplets, buckets)
    ]
    return torch.stack(grads)


def _multiply(rows: Tensor, matrix: Tensor) -> Tensor:
    """rows (P, C), matrix (1, C, M) -> (P, M).

    With M a multiple of 16, a row was not seen to depend on the others.
    """
    padding = MIN_ROWS - len(rows)
    if padding > 0:
        rows = torch.nn.functional.pad(rows, (0, 0, 0, padding))
    products = torch.bmm(rows[None], matrix)[0]
    return products[:-padding] if padding > 0 else products


def _bucket_sums(features: Tensor, triplets: Triplets, buckets: Buckets) -> Iterator[tuple[Tensor, Tensor]]:
    """For each kernel cell the rows i (P_k,) int64 that its buckets go to, and their sums (P_k, C)."""
    n_buckets, n_triplets = (
        torch.diff(k_offsets).tolist() for k_offsets in (buckets.k_offsets, triplets.k_offsets)
    )
    rows = buckets.i.long().split(n_buckets)  # with int32, index_add_ would add row by row
    first = 0
    for i, j in zip(rows, triplets.j.split(n_triplets), strict=True):
        offsets = buckets.offsets[first : first + len(i) + 1]
        sums = torch.nn.functional.embedding_bag(
            j, features, offsets - offsets[0], mode="sum", include_last_offset=True
        )
        yield i, sums
        first += len(i)
