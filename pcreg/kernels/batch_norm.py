"""Batch norm over groups of rows in training, with the shortcut and relu that follow it.

In inference the convolution before a norm applies it (pcreg.kernels.epilogue).
"""

import torch
from torch import Tensor, nn

from pcreg.kernels.epilogue import Epilogue
from pcreg.kernels.point_batch import PaddedRowGroups, RowGroups


def batch_norm(
    features: Tensor,
    groups: RowGroups | PaddedRowGroups,
    norm: nn.BatchNorm1d,
    residual: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """Compute relu(norm(features) + residual) in training, differentiably.

    On a GPU results and gradients repeat bit by bit, and there are no second derivatives.

    Args:
        features: (N, C). Sums are float32, or float64 for float64 features.
        groups: Groups of rows; each is normalised by its own mean and variance. Padding rows, which
            belong to no group, become zero and have no gradients.
        norm: Batch norm of C channels; each group in turn updates the running statistics.
        residual: (N, C), or None for zeros.
        relu: Apply the relu.

    Returns:
        (N, C) of the dtype of the features.

    Raises:
        ValueError: A group has fewer than two rows, or the groups do not have N rows in all.
    """
    groups.check(len(features))
    if features.is_cuda and features.dtype != torch.float64:
        from pcreg.kernels.triton.batch_norm import BatchNorm

        running = norm.running_mean, norm.running_var, norm.num_batches_tracked, norm.momentum
        return BatchNorm.apply(features, norm.weight, norm.bias, residual, groups, norm.eps, running, relu)
    parts = [norm(part) for part in groups.split(features)]
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    return Epilogue(residual=residual, relu=relu).apply(out)
