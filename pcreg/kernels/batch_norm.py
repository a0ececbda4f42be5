"""Batch norm in training, of groups of rows, with the shortcut and relu that follow it.

In inference a norm is a part of the convolution before it (pcreg.kernels.epilogue).
"""

import torch
from torch import Tensor, nn

from pcreg.kernels.point_batch import PaddedRowGroups, RowGroups, RunningStatistics


def batch_norm(
    features: Tensor,
    groups: RowGroups | PaddedRowGroups,
    scale: Tensor,
    shift: Tensor,
    epsilon: float,
    running: RunningStatistics,
    residual: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """Compute relu((x - mean) / sqrt(variance + epsilon) * scale + shift + residual), differentiably.

    On a GPU results and gradients repeat bit by bit, and there are no second derivatives.

    Args:
        features: (N, C). Sums over them are float32, or float64 for float64.
        groups: Groups of rows; mean and variance are those of the rows of one group. Padded rows, which
            belong to no group, become zero and have no gradients.
        scale: (C,) float32, like `shift`.
        shift: (C,).
        epsilon: Added to the variance.
        running: Statistics to update in place with each group in turn.
        residual: (N, C), or None for zeros.
        relu: Apply the relu.

    Returns:
        (N, C) of the dtype of the features.

    Raises:
        ValueError: A group has fewer than two rows, or the groups have another number of rows.
    """
    groups.check(len(features))
    if features.is_cuda and features.dtype != torch.float64:
        from pcreg.kernels.triton.batch_norm import BatchNorm

        return BatchNorm.apply(features, scale, shift, residual, groups, epsilon, running, relu)
    mean, variance, count, momentum = running
    parts = [
        nn.functional.batch_norm(part, mean, variance, scale, shift, True, momentum, epsilon)
        for part in groups.split(features)
    ]
    count += len(groups)
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    if residual is not None:
        out = out + residual
    return torch.relu(out) if relu else out
