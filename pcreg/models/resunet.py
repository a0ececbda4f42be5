"""ResUNet with the layer names and widths of FCGF's ResUNetBN2C, on native points.

Encoder and decoder of four levels; each layer is a convolution, a batch norm and a residual block.
"""

import torch
from torch import Tensor, nn

from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import FirstConv, PointConv, ResidualBlock, linear, make_norm, normed_conv
from pcreg.models.weights_file import Architecture


class ResUNet(nn.Module):
    """Network that computes one unit-length descriptor per point."""

    def __init__(self, architecture: Architecture):
        super().__init__()
        self.architecture = architecture
        e, d = architecture.encoder, architecture.decoder
        for name, (n_in, n_out) in architecture.layers.items():
            first = FirstConv(n_out, architecture.stem_kernel_size) if name == "1" else None
            self.add_module(f"conv{name}", first or PointConv(n_in, n_out))
            self.add_module(f"norm{name}", make_norm(n_out))
            self.add_module(f"block{name}", ResidualBlock(n_out))
        self.conv1_tr = nn.Linear(d[1] + e[0], d[0], bias=False)
        self.final = nn.Linear(d[0], architecture.out_channels)
        self.frozen_norms = False

    def train(self, mode: bool = True) -> "ResUNet":
        """Set the mode; with `frozen_norms` the batch norms stay in evaluation mode."""
        super().train(mode)
        for layer in self.modules():
            if self.frozen_norms and isinstance(layer, nn.BatchNorm1d):
                layer.eval()
        return self

    def forward(self, pyramid: Pyramid) -> Tensor:
        """Descriptors (N, out_channels), of unit length, of the points of pyramid.levels[0]."""
        same, down, groups = pyramid.same, pyramid.down, pyramid.row_groups
        up = [triplets.transposed for triplets in down]
        n, device = len(pyramid.levels[0]), pyramid.stem.device
        identity = None if torch.is_grad_enabled() else Triplets.identity(n, device)

        def onto(level: int, name: str, features: Tensor, into: Triplets | None) -> Tensor:
            """Apply a convolution into a level, then a residual block within that level."""
            conv, norm, block = (getattr(self, f"{part}{name}") for part in ("conv", "norm", "block"))
            return block(normed_conv(conv, norm, features, into, groups[level]), same[level], groups[level])

        level1 = onto(0, "1", pyramid.stem, identity)
        level2 = onto(1, "2", level1, down[0])
        level3 = onto(2, "3", level2, down[1])
        level4 = onto(3, "4", level3, down[2])

        out = torch.cat([onto(2, "4_tr", level4, up[2]), level3], 1)
        out = torch.cat([onto(1, "3_tr", out, up[1]), level2], 1)
        out = onto(0, "2_tr", out, up[0])
        out = linear(self.conv1_tr, torch.cat([out, level1], 1), identity, relu=True)
        out = linear(self.final, out, identity)
        return nn.functional.normalize(out)
