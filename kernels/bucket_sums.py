"""MVMR and VVOR in plain PyTorch: the CPU's path, and float64's on any device.

For each kernel cell the features of a bucket (k, i) are summed, multiplied by W[k] once, and added
to row i, which occurs once per cell: the result does not depend on the order of threads. At no
time does more than one cell's bucket sums exist.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from kernels.triplets import Buckets, Triplets


def mvmr(features: Tensor, weight: Tensor, triplets: Triplets, buckets: Buckets) -> Tensor:
    """features (N_in, C), weight (K, G, C/G, M/G) of one dtype -> (N_out, M), row i the sum of W[k] x[j]."""
    _, G, C, M = weight.shape
    out = features.new_zeros(triplets.n_out, G * M)
    for k, (i, sums) in enumerate(_bucket_sums(features, triplets, buckets)):
        products = (
            (sums.unflatten(1, (G, C)).transpose(0, 1) @ weight[k]).transpose(0, 1).flatten(1)
        )  # (P_k, M)
        # On the CPU three times as fast as index_add_, which adds row by row.
        out.scatter_add_(0, i.long()[:, None].expand_as(products), products)
    return out


def vvor(features: Tensor, grad_out: Tensor, triplets: Triplets, buckets: Buckets, groups: int) -> Tensor:
    """features (N_in, C), grad_out (N_out, M) of one dtype -> (K, G, C/G, M/G), sum of x[j] g[i]^T."""
    grads = []
    for i, sums in _bucket_sums(features, triplets, buckets):
        x = sums.unflatten(1, (groups, -1)).permute(1, 2, 0)  # (G, C/G, P_k)
        g = grad_out.index_select(0, i).unflatten(1, (groups, -1)).transpose(0, 1)  # (G, P_k, M/G)
        grads.append(x @ g)
    return torch.stack(grads)


def _bucket_sums(features: Tensor, triplets: Triplets, buckets: Buckets) -> Iterator[tuple[Tensor, Tensor]]:
    """For each kernel cell the output rows i (P_k,) of its buckets and their summed features (P_k, C)."""
    k_offsets = buckets.k_offsets.tolist()
    for low, high in pairwise(k_offsets):
        offsets = buckets.offsets[low : high + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        sums = torch.nn.functional.embedding_bag(
            triplets.j[first:last], features, offsets - first, mode="sum", include_last_offset=True
        )
        yield buckets.i[low:high], sums
