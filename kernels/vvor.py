"""VVOR: dW[k] += x[j] g[i]^T over all triplets. The weight gradient of a convolution."""

import torch
from torch import Tensor

from kernels.mvmr import bucket_sums
from kernels.triplets import Triplets


def vvor(features: Tensor, grad_out: Tensor, triplets: Triplets, groups: int = 1) -> Tensor:
    """features (N_in, C), grad_out (N_out, M) of one dtype -> (K, G, C/G, M/G)."""
    grads = []
    for i, sums in bucket_sums(features, triplets):
        x = sums.unflatten(1, (groups, -1)).permute(1, 2, 0)  # (G, C/G, P_k)
        g = grad_out.index_select(0, i).unflatten(1, (groups, -1)).transpose(0, 1)  # (G, P_k, M/G)
        grads.append(x @ g)
    return torch.stack(grads)
