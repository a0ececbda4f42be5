"""Operators by backend: MVMR and VVOR by that which the triplets are arranged for, and batch norm."""

import torch
from torch import Tensor

from pcreg.kernels import plain_conv
from pcreg.kernels.alignment import aligned
from pcreg.kernels.batch_norm import RunningStatistics, plain_batch_norm
from pcreg.kernels.dataflow import Arrangement
from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.row_groups import PaddedRowGroups, RowGroups
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Buckets, Triplets


def mvmr(
    features: Tensor,
    weight: Tensor,
    triplets: Triplets,
    arrangement: Arrangement,
    tf32: bool = False,
    deterministic: bool = False,
    epilogue: Epilogue = NOTHING,
) -> Tensor:
    """out[i] += W[k] x[j] over all triplets: features (N_in, C), weight (K, G, C/G, M/G) -> (N_out, M).

    With `deterministic` a row does not depend, to the last bit, on the other rows of the arrangement.
    """
    if isinstance(arrangement, Buckets):
        return epilogue.apply(plain_conv.mvmr(features, weight, triplets, arrangement))
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton import output_stationary, weight_stationary

    features = aligned(features)
    if isinstance(arrangement, Tiles):
        sizes = triplets.n_out, tf32, not deterministic
        return output_stationary.mvmr(features, weight, triplets.j, arrangement, *sizes, epilogue)
    return weight_stationary.mvmr(features, weight, triplets, tf32, epilogue)


def vvor(
    features: Tensor,
    grad_out: Tensor,
    triplets: Triplets,
    arrangement: Arrangement,
    groups: int,
    dtype: torch.dtype,
) -> Tensor:
    """dW[k] += x[j] g[i]^T over all triplets, of `dtype`.

    features (N_in, C), grad_out (N_out, M) -> (K, G, C/G, M/G).
    """
    if isinstance(arrangement, Buckets):
        return plain_conv.vvor(features, grad_out, triplets, arrangement, groups).to(dtype)
    from pcreg.kernels.triton import weight_gradient

    return weight_gradient.vvor(aligned(features), aligned(grad_out), triplets, groups, dtype)


def batch_norm(
    features: Tensor,
    groups: RowGroups | PaddedRowGroups,
    scale: Tensor,
    shift: Tensor,
    epsilon: float,
    running: RunningStatistics | None = None,
    residual: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """relu((x - mean) / sqrt(variance + epsilon) * scale + shift + residual), differentiable in all of it.

    features and residual (N, C), scale and shift (C,) float32 -> (N, C) of the dtype of the features. Mean
    and variance are of the rows of one group; `running` sees the groups in their order. Sums are float32.
    On a GPU results and gradients repeat bit by bit, there are no second derivatives, and padded rows, which
    belong to no group, become zero and have no gradients. Raises ValueError for a group of fewer than two
    rows, and for groups that are not those of the features.
    """
    groups.check(len(features))
    if features.is_cuda and features.dtype != torch.float64:
        from pcreg.kernels.triton import batch_norm as kernel

        return kernel.batch_norm(features, groups, scale, shift, epsilon, running, residual, relu)
    return plain_batch_norm(features, groups, scale, shift, epsilon, running, residual, relu)


def tf32_is_allowed() -> bool:
    """Torch's own switch, for who leaves the choice to it."""
    return torch.backends.cuda.matmul.fp32_precision == "tf32"
