"""ResUNet with the names and widths of FCGF's ResUNetBN2C, on native points.

Encoder and decoder of four levels; each layer is a convolution, a batch norm and a residual block.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import (
    FirstConv,
    PointConv,
    ResidualBlock,
    checkpointed_level,
    convolve_level,
    linear,
    make_norm,
)
from pcreg.models.matcher import Matcher
from pcreg.models.weights_file import Architecture, MatcherArchitecture


class ResUNet(nn.Module):
    """Network from points to one unit-length descriptor per point."""

    def __init__(self, architecture: Architecture, checkpointing: bool = False):
        """With `checkpointing` training keeps the features of levels alone and computes the others again."""
        super().__init__()
        self.architecture, self.checkpointing = architecture, checkpointing
        e, d = architecture.encoder, architecture.decoder
        self.conv1 = FirstConv(e[0], architecture.stem_kernel_size)
        self.norm1, self.block1 = make_norm(e[0]), ResidualBlock(e[0])
        self.conv2 = PointConv(e[0], e[1])
        self.norm2, self.block2 = make_norm(e[1]), ResidualBlock(e[1])
        self.conv3 = PointConv(e[1], e[2])
        self.norm3, self.block3 = make_norm(e[2]), ResidualBlock(e[2])
        self.conv4 = PointConv(e[2], e[3])
        self.norm4, self.block4 = make_norm(e[3]), ResidualBlock(e[3])
        self.conv4_tr = PointConv(e[3], d[3])
        self.norm4_tr, self.block4_tr = make_norm(d[3]), ResidualBlock(d[3])
        self.conv3_tr = PointConv(d[3] + e[2], d[2])
        self.norm3_tr, self.block3_tr = make_norm(d[2]), ResidualBlock(d[2])
        self.conv2_tr = PointConv(d[2] + e[1], d[1])
        self.norm2_tr, self.block2_tr = make_norm(d[1]), ResidualBlock(d[1])
        self.conv1_tr = nn.Linear(d[1] + e[0], d[0], bias=False)
        self.final = nn.Linear(d[0], architecture.out_channels)
        self.matcher = architecture.matcher and Matcher(architecture.matcher, e[2] + d[3])
        self.frozen_norms = False

    def train(self, mode: bool = True) -> "ResUNet":
        """Set the mode; norms of parts not trained, and all with `frozen_norms`, keep their statistics."""
        super().train(mode)
        for part in self.children():
            if self.frozen_norms or not any(parameter.requires_grad for parameter in part.parameters()):
                for layer in part.modules():
                    if isinstance(layer, nn.BatchNorm1d):
                        layer.eval()
        return self

    def train_matcher_alone(self) -> None:
        """Keep the weights that describe points from now on."""
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name.startswith("matcher."))

    def with_matcher(self, architecture: MatcherArchitecture | None) -> "ResUNet":
        """Copy the network with a matcher, new if there was none, or without one for None."""
        network = ResUNet(replace(self.architecture, matcher=architecture), self.checkpointing)
        network.load_state_dict(self.state_dict(), strict=False)
        return network

    def forward(self, pyramid: Pyramid) -> Tensor:
        """Descriptors (N, out_channels), of unit length, of the points of pyramid.levels[0]."""
        return self.features(pyramid)[0]

    def features(self, pyramid: Pyramid) -> tuple[Tensor, Tensor]:
        """Descriptors, and features (M, C) of the points of pyramid.levels[NODE_LEVEL].

        The latter are those of the decoder and of the encoder at this level, side by side.
        """
        same, down, groups = pyramid.same, pyramid.down, pyramid.row_groups
        up = [triplets.transposed for triplets in down]
        n, device = len(pyramid.levels[0]), pyramid.stem.device
        identity = None if torch.is_grad_enabled() else Triplets.identity(n, device)

        def onto(level: int, conv, norm, block, features, into) -> Tensor:
            checkpointing = self.checkpointing and torch.is_grad_enabled()
            convolve = checkpointed_level if checkpointing else convolve_level
            return convolve(conv, norm, block, features, into, same[level], groups[level])

        level1 = onto(0, self.conv1, self.norm1, self.block1, pyramid.stem, identity)
        level2 = onto(1, self.conv2, self.norm2, self.block2, level1, down[0])
        level3 = onto(2, self.conv3, self.norm3, self.block3, level2, down[1])
        level4 = onto(3, self.conv4, self.norm4, self.block4, level3, down[2])

        out = onto(2, self.conv4_tr, self.norm4_tr, self.block4_tr, level4, up[2])
        nodes = torch.cat([out, level3], 1)
        out = onto(1, self.conv3_tr, self.norm3_tr, self.block3_tr, nodes, up[1])
        out = torch.cat([out, level2], 1)
        out = onto(0, self.conv2_tr, self.norm2_tr, self.block2_tr, out, up[0])
        out = linear(self.conv1_tr, torch.cat([out, level1], 1), identity, relu=True)
        out = linear(self.final, out, identity)
        return nn.functional.normalize(out), nodes

    def pyramid(self, batch: PointBatch, voxel: float | None = None) -> Pyramid:
        """Build the pyramid of a batch of clouds with one point per `voxel`, in metres.

        The default is the voxel size of the architecture. Clouds that are larger by a factor have the same
        descriptors with a voxel size larger by the same factor.
        """
        geometry = self.architecture.geometry
        return Pyramid.build(batch, geometry if voxel is None else replace(geometry, voxel=voxel))

    def describe(self, batch: PointBatch, voxel: float | None = None) -> Tensor:
        """Descriptors (N, out_channels) of a batch of clouds, see `pyramid`."""
        return self(self.pyramid(batch, voxel))
