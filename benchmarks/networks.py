"""The networks that are measured, and how each takes its precision and its activation checkpoints."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from workload import PRECISIONS

from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import (
    FirstConv,
    PointConv,
    ResidualBlock,
    batch_norm,
    checkpointed_level,
    convolve_in,
    convolve_level,
)
from pcreg.models.resunet import Architecture


def in_precision(network: nn.Module, precision: str) -> nn.Module:
    """The network with weights of that precision, for inference."""
    dtype = PRECISIONS[precision]
    ours = any(isinstance(layer, PointConv) for layer in network.modules())
    return convolve_in(network, dtype) if ours else network.to(dtype)


class Encoder(nn.Module):
    """A residual network without decoder: the ResUNet's stem and its four levels on the way down."""

    def __init__(self, architecture: Architecture, checkpointing: bool = False):
        super().__init__()
        self.architecture, self.checkpointing = architecture, checkpointing
        widths = architecture.encoder
        self.convs = nn.ModuleList([FirstConv(widths[0], architecture.stem_kernel_size)])
        self.convs.extend(map(PointConv, widths, widths[1:]))
        self.norms = nn.ModuleList(map(batch_norm, widths))
        self.blocks = nn.ModuleList(map(ResidualBlock, widths))

    def forward(self, pyramid: Pyramid) -> Tensor:
        """The features (N_4, 256) of the points of pyramid.levels[3]."""
        out = pyramid.stem
        by_torch = torch.is_grad_enabled()
        identity = None if by_torch else Triplets.identity(len(pyramid.levels[0]), out.device)
        for level, triplets in enumerate([identity, *pyramid.down]):
            layers = self.convs[level], self.norms[level], self.blocks[level]
            convolve = checkpointed_level if self.checkpointing else convolve_level
            out = convolve(*layers, out, triplets, pyramid.same[level])
        return out


@contextmanager
def tf32_if(precision: str) -> Iterator[None]:
    """Products of float32 features in tf32 where that is the precision, and nowhere else."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Half precision as one trains with it: float32 weights, cast for each product."""
    dtype = PRECISIONS[precision]
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)
