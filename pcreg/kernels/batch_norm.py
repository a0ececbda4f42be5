"""Batch norm in training, of groups of rows apart, with what follows it: a shortcut and a relu.

In inference a norm is a part of the convolution before it (kernels/epilogue.py).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pcreg.kernels.row_groups import RowGroups


class RunningStatistics(NamedTuple):
    """What a norm remembers of all groups it has seen; changed in place."""

    mean: Tensor  # (C,) float32
    variance: Tensor  # (C,) float32, of n - 1
    count: Tensor  # () int64, groups
    momentum: float  # share of the newest group


def plain_batch_norm(
    features: Tensor,
    groups: RowGroups,
    scale: Tensor,
    shift: Tensor,
    epsilon: float,
    running: RunningStatistics | None,
    residual: Tensor | None,
    relu: bool,
) -> Tensor:
    """The definition, and the CPU's path, of pcreg.kernels.dispatch.batch_norm."""
    mean, variance, count, momentum = running or (None, None, None, 0.0)
    parts = [
        nn.functional.batch_norm(part, mean, variance, scale, shift, True, momentum, epsilon)
        for part in groups.split(features)
    ]
    if count is not None:
        count += len(groups)
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    if residual is not None:
        out = out + residual
    return torch.relu(out) if relu else out
