"""The layers of the network: a convolution on native points, and the residual block made of two."""

import math

import torch
from torch import Tensor, nn

from kernels.autograd import point_conv
from kernels.triplets import Triplets

BATCH_NORM_MOMENTUM = 0.05  # FCGF


class PointConv(nn.Module):
    """Convolution over triplets, without bias. weight (K, G, C/G, M/G), K = fineness^3."""

    def __init__(self, in_channels: int, out_channels: int, fineness: int = 3, groups: int = 1):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"groups={groups} must divide {in_channels} input and {out_channels} output channels"
            )
        K, C, M = fineness**3, in_channels // groups, out_channels // groups
        self.weight = nn.Parameter(torch.randn(K, groups, C, M) * math.sqrt(2 / (K * C)))  # He et al. 2015

    def forward(self, features: Tensor, triplets: Triplets) -> Tensor:
        """features (N_in, C) -> (N_out, M). Heeds torch's switches for tf32 and for repeatable results."""
        deterministic = torch.are_deterministic_algorithms_enabled()
        return point_conv(features, self.weight, triplets, tf32=None, deterministic=deterministic)

    def extra_repr(self) -> str:
        K, G, C, M = self.weight.shape
        return f"{G * C}, {G * M}, fineness={round(K ** (1 / 3))}, groups={G}"


class ResidualBlock(nn.Module):
    """conv, norm, relu, conv, norm, plus the input, relu; the width stays."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = PointConv(channels, channels)
        self.norm1 = batch_norm(channels)
        self.conv2 = PointConv(channels, channels)
        self.norm2 = batch_norm(channels)

    def forward(self, features: Tensor, triplets: Triplets) -> Tensor:
        """features (N, C) -> (N, C)."""
        out = torch.relu(self.norm1(self.conv1(features, triplets)))
        return torch.relu(self.norm2(self.conv2(out, triplets)) + features)


def batch_norm(channels: int) -> nn.BatchNorm1d:
    return nn.BatchNorm1d(channels, momentum=BATCH_NORM_MOMENTUM)
