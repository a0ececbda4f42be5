"""The same ResUNet of spconv's sparse voxel convolutions: its layers, widths and concatenations.

It calls the functions that spconv's modules call (2.3.8), so that building the indices and convolving can
be timed apart, which its modules do not allow for strided layers; and its defaults: implicit GEMM with
masks, but gathering and scattering per cell (`Native`) for kernels of more than 32 cells, such as the
stem's. Its strided convolution of 3^3 cells makes a coarse voxel wherever a cell meets a fine one, which
is more of them than there are cells of twice the size: `down_kernel` 2 has the same voxels as ours.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from cumm import tensorview
from spconv.core import ConvAlgo
from spconv.pytorch import functional, ops
from spconv.pytorch.core import ThrustSortAllocator
from spconv.tools import CUDAKernelTimer
from torch import Tensor, nn

from pcreg.models.layers import batch_norm
from pcreg.models.resunet import Architecture


@dataclass(frozen=True)
class Indices:
    """What spconv knows of one convolution, as its ImplicitGemmIndiceData, from voxels to voxels."""

    n_out: int
    forward: tuple  # pairs (K, N_out) int32, -1 for none; masks and their order, a list of tensors each
    backward: tuple  # the same of the way back
    masks: list
    same_voxels: bool

    @cached_property
    def transposed(self) -> "Indices":
        """The way back, for a strided convolution."""
        return Indices(self.backward[0].shape[1], self.backward, self.forward, self.masks, False)

    def count(self) -> int:
        return int((self.forward[0] >= 0).sum())


@dataclass(frozen=True)
class NativePairs:
    """What spconv knows of a convolution of many cells."""

    n_out: int
    pairs: Tensor  # (2, K, N) int32
    counts: Tensor  # (K,) int32


@dataclass(frozen=True)
class SpconvPyramid:
    """All indices of the network: what Pyramid is to ours."""

    levels: list[Tensor]  # voxels (N_l, 4) int32
    stem: Indices | NativePairs
    same: list[Indices]
    down: list[Indices]

    @staticmethod
    def build(
        voxels: Tensor,
        clouds: int,
        shape: list[int],
        architecture: Architecture,
        training: bool,
        down_kernel: int = 3,
    ) -> "SpconvPyramid":
        """From voxels (N, 4) int32 of cloud, x, y, z, in a grid of this shape."""
        levels, same, down = [voxels], [], []
        for level in range(4):
            same.append(submanifold(levels[-1], clouds, shape, 3, training))
            if level == 0:
                kernel_size = architecture.stem_kernel_size
                stem = same[0] if kernel_size == 3 else many_cells(voxels, clouds, shape, kernel_size)
            if level < 3:
                coarser, shape, indices = strided(levels[-1], clouds, shape, down_kernel)
                levels.append(coarser)
                down.append(indices)
        return SpconvPyramid(levels, stem, same, down)


def submanifold(voxels: Tensor, clouds: int, shape: list[int], kernel: int, training: bool) -> Indices:
    """Indices of a convolution of voxels (N, 4) onto themselves, as SubMConv3d builds them."""
    found = _search(voxels, clouds, shape, kernel, 1, True, training)
    _, _, pairs, pairs_back, masks, _, orders, _, filters = found
    return Indices(len(voxels), (pairs, masks, orders), (pairs_back, [], []), filters, True)


def many_cells(voxels: Tensor, clouds: int, shape: list[int], kernel: int) -> NativePairs:
    """As SubMConv3d builds them for a kernel of more than 32 cells: masked ones are compiled at run time."""
    _, pairs, counts = ops.get_indice_pairs(
        voxels,
        clouds,
        shape,
        ConvAlgo.Native,
        ksize=[kernel] * 3,
        stride=[1] * 3,
        padding=[0] * 3,
        dilation=[1] * 3,
        out_padding=[0] * 3,
        subm=True,
    )
    return NativePairs(len(voxels), pairs, counts)


def strided(voxels: Tensor, clouds: int, shape: list[int], kernel: int) -> tuple[Tensor, list[int], Indices]:
    """Half as many voxels along each axis, the shape of their grid, and the indices, as SparseConv3d's."""
    found = _search(voxels, clouds, shape, kernel, 2, False, True)  # SparseConv3d builds both ways, always
    out, _, pairs, pairs_back, masks, masks_back, orders, orders_back, filters = found
    size = ops.get_conv_output_size(shape, [kernel] * 3, [2] * 3, [(kernel - 1) // 2] * 3, [1] * 3)
    both = (pairs, masks, orders), (pairs_back, masks_back, orders_back)
    return out, size, Indices(len(out), *both, filters, False)


def _search(voxels, clouds, shape, kernel, stride, same, training) -> tuple:
    return ops.get_indice_pairs_implicit_gemm(
        voxels,
        clouds,
        shape,
        ConvAlgo.MaskImplicitGemm,
        ksize=[kernel] * 3,
        stride=[stride] * 3,
        padding=[(kernel - 1) // 2] * 3,
        dilation=[1] * 3,
        out_padding=[0] * 3,
        subm=same,
        is_train=training,
        alloc=ThrustSortAllocator(voxels.device),
    )


class SpconvConv(nn.Module):
    """SubMConv3d, SparseConv3d or SparseInverseConv3d, without bias: which, the indices decide."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 3):
        super().__init__()
        shape = (out_channels, kernel, kernel, kernel, in_channels)
        self.weight = nn.Parameter(torch.randn(shape) * (2 / (kernel**3 * in_channels)) ** 0.5)

    def forward(self, features: Tensor, indices: Indices | NativePairs) -> Tensor:
        no_bias = None, 0.0, 0.0, tensorview.gemm.Activation.None_  # nor activation
        timer = CUDAKernelTimer(False)
        if isinstance(indices, NativePairs):
            return functional.indice_subm_conv(
                features.contiguous(), self.weight, indices.pairs, indices.counts, indices.n_out,
                ConvAlgo.Native, timer, *no_bias,
            )  # fmt: skip
        (pairs, masks, orders), (pairs_back, masks_back, orders_back) = indices.forward, indices.backward
        if not self.training:
            return ops.implicit_gemm(
                features.contiguous(), self.weight, pairs, masks, orders, indices.n_out, indices.masks,
                False, indices.same_voxels, output_dtype=self.weight.dtype,
            )[0]  # fmt: skip
        return functional.implicit_gemm(
            features.contiguous(), self.weight, pairs, pairs_back, masks, masks_back, orders, orders_back,
            indices.n_out, indices.masks, True, indices.same_voxels, timer, None, *no_bias,
        )  # fmt: skip


class Layer(nn.Module):
    """Convolution, norm and residual block."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 3):
        super().__init__()
        self.conv = SpconvConv(in_channels, out_channels, kernel)
        self.conv1, self.conv2 = (SpconvConv(out_channels, out_channels) for _ in range(2))
        self.norm, self.norm1, self.norm2 = (batch_norm(out_channels) for _ in range(3))

    def forward(self, features: Tensor, indices: Indices, same: Indices) -> Tensor:
        features = self.norm(self.conv(features, indices))
        out = torch.relu(self.norm1(self.conv1(features, same)))
        return torch.relu(self.norm2(self.conv2(out, same)) + features)


class SpconvResUNet(nn.Module):
    """pcreg.models.resunet.ResUNet, convolution by convolution."""

    def __init__(self, architecture: Architecture, down_kernel: int = 3):
        super().__init__()
        e, d = architecture.encoder, architecture.decoder
        k = down_kernel
        self.stem = Layer(1, e[0], architecture.stem_kernel_size)
        self.encoder = nn.ModuleList([Layer(e[0], e[1], k), Layer(e[1], e[2], k), Layer(e[2], e[3], k)])
        self.decoder = nn.ModuleList(
            [Layer(e[3], d[3], k), Layer(d[3] + e[2], d[2], k), Layer(d[2] + e[1], d[1], k)]
        )
        self.conv1_tr = nn.Linear(d[1] + e[0], d[0], bias=False)
        self.final = nn.Linear(d[0], architecture.out_channels)

    def forward(self, pyramid: SpconvPyramid) -> Tensor:
        """The descriptors (N, out_channels), of unit length, of the voxels of pyramid.levels[0]."""
        same, down = pyramid.same, pyramid.down
        ones = self.final.weight.new_ones(len(pyramid.levels[0]), 1)
        finer = [self.stem(ones, pyramid.stem, same[0])]
        for layer, indices, level in zip(self.encoder, down, same[1:], strict=True):
            finer.append(layer(finer[-1], indices, level))
        out = finer.pop()
        for layer, indices, level in zip(self.decoder, down[::-1], same[2::-1], strict=True):
            out = torch.cat([layer(out, indices.transposed, level), finer.pop()], 1)
        out = self.final(torch.relu(self.conv1_tr(out)))
        return nn.functional.normalize(out)
