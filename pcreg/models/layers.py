"""Layers of the network: convolutions on native points, with their norms, and residual blocks."""

import math

import torch
from torch import Tensor, nn

from pcreg.kernels.batch_norm import batch_norm
from pcreg.kernels.conv import point_conv
from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.point_batch import RowGroups
from pcreg.kernels.pyramid_config import KERNEL_SIZE
from pcreg.kernels.triplets import Triplets

BATCH_NORM_MOMENTUM = 0.05  # FCGF
ALIGNED_CHANNELS = 16


class PointConv(nn.Module):
    """Convolution over triplets, without bias, in one group. weight (K, 1, C, M), K = kernel_size^3."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int = KERNEL_SIZE):
        super().__init__()
        K, C, M = kernel_size**3, in_channels, out_channels
        self.weight = nn.Parameter(torch.randn(K, 1, C, M) * math.sqrt(2 / (K * C)))  # He et al. 2015

    def forward(self, features: Tensor, triplets: Triplets, epilogue: Epilogue = NOTHING) -> Tensor:
        """features (N_in, C) -> (N_out, M)."""
        return point_conv(features, self.weight, triplets, epilogue)


class FirstConv(PointConv):
    """Convolution of a constant 1: a linear layer on the numbers of points in the kernel cells."""

    def __init__(self, out_channels: int, kernel_size: int):
        super().__init__(1, out_channels, kernel_size)

    def forward(self, counts: Tensor, identity: Triplets | None, epilogue: Epilogue = NOTHING) -> Tensor:
        """counts (K, N) -> (N, M); with `identity` triplets, as a convolution over them."""
        K, M = len(self.weight), self.weight.shape[3]
        autocast = torch.is_autocast_enabled(counts.device.type)
        dtype = torch.get_autocast_dtype(counts.device.type) if autocast else self.weight.dtype
        features = counts.T.to(dtype, memory_format=torch.contiguous_format)
        if identity is None:
            return epilogue.apply(features @ self.weight.view(K, M))
        # With aligned rows the kernel is compiled in a third of the time and needs fewer registers.
        spare = -K % ALIGNED_CHANNELS
        features = nn.functional.pad(features, (0, spare))
        weight = nn.functional.pad(self.weight.view(1, 1, K, M), (0, 0, 0, spare))
        return point_conv(features, weight, identity, epilogue)


class ResidualBlock(nn.Module):
    """Residual block of constant width: relu(norm2(conv2(relu(norm1(conv1(x))))) + x)."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = PointConv(channels, channels)
        self.norm1 = make_norm(channels)
        self.conv2 = PointConv(channels, channels)
        self.norm2 = make_norm(channels)

    def forward(self, features: Tensor, triplets: Triplets, groups: RowGroups) -> Tensor:
        """features (N, C) -> (N, C)."""
        out = normed_conv(self.conv1, self.norm1, features, triplets, groups, relu=True)
        return normed_conv(self.conv2, self.norm2, out, triplets, groups, residual=features, relu=True)


def normed_conv(
    conv: PointConv,
    norm: nn.BatchNorm1d,
    features: Tensor,
    triplets: Triplets,
    groups: RowGroups,
    residual: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """Compute relu(norm(conv(features)) + residual); in inference as the epilogue of the convolution.

    In training each group of rows has its own statistics, and the groups update the running ones in turn.
    """
    if norm.training:
        return batch_norm(conv(features, triplets), groups, norm, residual, relu)
    epilogue = Epilogue(norm, residual=residual, relu=relu)
    if torch.is_grad_enabled():
        return epilogue.apply(conv(features, triplets))
    return conv(features, triplets, epilogue)


def linear(layer: nn.Linear, features: Tensor, identity: Triplets | None, relu: bool = False) -> Tensor:
    """Compute relu(layer(features)); with `identity` triplets, for inference, as a convolution over them.

    The convolution computes each row bit by bit the same, whatever other clouds are in the batch.
    """
    if identity is None:
        return torch.relu(layer(features)) if relu else layer(features)
    epilogue = Epilogue(bias=layer.bias, relu=relu)
    return point_conv(features, layer.weight.T[None, None], identity, epilogue)


def make_norm(channels: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(channels, momentum=BATCH_NORM_MOMENTUM)
