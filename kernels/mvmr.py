"""MVMR: out[i] += W[k] x[j] over all triplets. Forward pass and input gradient of a convolution.

For each kernel cell the features of a bucket (k, i) are summed, multiplied by W[k] once, and added
to row i, which occurs once per cell: the result does not depend on the order of threads. At no
time does more than one cell's bucket sums exist.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from kernels.triplets import Triplets


def mvmr(features: Tensor, weight: Tensor, triplets: Triplets) -> Tensor:
    """features (N_in, C), weight (K, G, C/G, M/G) of one dtype -> (N_out, M), row i the sum of W[k] x[j]."""
    _, G, C, M = weight.shape
    out = features.new_zeros(triplets.n_out, G * M)
    for k, (i, sums) in enumerate(bucket_sums(features, triplets)):
        products = (
            (sums.unflatten(1, (G, C)).transpose(0, 1) @ weight[k]).transpose(0, 1).flatten(1)
        )  # (P_k, M)
        # On the CPU three times as fast as index_add_, which adds row by row.
        out.scatter_add_(0, i.long()[:, None].expand_as(products), products)
    return out


def bucket_sums(features: Tensor, triplets: Triplets) -> Iterator[tuple[Tensor, Tensor]]:
    """For each kernel cell the output rows i (P_k,) of its buckets and their summed features (P_k, C)."""
    buckets = triplets.buckets
    k_offsets = buckets.k_offsets.tolist()
    for low, high in pairwise(k_offsets):
        offsets = buckets.offsets[low : high + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        sums = torch.nn.functional.embedding_bag(
            triplets.j[first:last], features, offsets - first, mode="sum", include_last_offset=True
        )
        yield buckets.i[low:high], sums
