"""Sparse convolutions of the same voxels by spconv, and by spconv-triton, which has the same interface.

Whichever is installed is measured, on a GPU. Voxels are given as they want them, (N, 4) int32 with the cloud
first, in a grid whose shape is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor, nn

from pcreg.models.architecture import Architecture
from pcreg.models.layers import make_norm

PACKAGES = {"spconv": "spconv", "spconv-triton": "spconv_triton"}
PRECISIONS = ("float32", "float16")  # bfloat16 spconv lacks, and tf32 is a switch of the process


@dataclass(frozen=True)
class VoxelGrid:
    """The occupied voxels of a batch of clouds."""

    voxels: Tensor  # (N, 4) int32: cloud, x, y, z
    shape: list[int]
    n_clouds: int

    @staticmethod
    def of(cells: Tensor, lengths: Tensor) -> "VoxelGrid":
        """From cells (N, 3) int64, cloud by cloud, of lengths (B,)."""
        cloud = torch.repeat_interleave(torch.arange(len(lengths), device=cells.device), lengths)
        cells = cells - cells.amin(0)
        return VoxelGrid(
            torch.cat([cloud[:, None], cells], 1).int(), (cells.amax(0) + 1).tolist(), len(lengths)
        )


def installed(device: torch.device) -> dict[str, ModuleType]:
    """The packages that can be measured, by name."""
    if device.type != "cuda":
        return {}
    return {
        name: import_module(f"{package}.pytorch") for name, package in PACKAGES.items() if find_spec(package)
    }


def search(package: ModuleType, grid: VoxelGrid) -> Tensor:
    """What a convolution of 27 cells onto the same voxels needs for inference: pairs (27, N) int32."""
    root = package.__name__.removesuffix(".pytorch")
    return package.ops.get_indice_pairs_implicit_gemm(
        grid.voxels,
        grid.n_clouds,
        grid.shape,
        import_module(f"{root}.core").ConvAlgo.MaskImplicitGemm,
        ksize=[3] * 3,
        stride=[1] * 3,
        padding=[1] * 3,
        dilation=[1] * 3,
        out_padding=[0] * 3,
        subm=True,
        is_train=False,
        alloc=import_module(f"{root}.pytorch.core").ThrustSortAllocator(grid.voxels.device),
    )[2]


def convolution(
    package: ModuleType, grid: VoxelGrid, C: int, M: int, dtype: torch.dtype
) -> tuple[Callable[[], Tensor], Callable[[], tuple[Tensor, ...]]]:
    """A convolution of 27 cells, its indices built: forward, and with the gradients."""
    device = grid.voxels.device
    layer = package.SubMConv3d(C, M, 3, bias=False, indice_key="voxels").to(device, dtype)
    features = torch.randn(len(grid.voxels), C, dtype=dtype, device=device, requires_grad=True)
    grad_out = torch.randn(len(grid.voxels), M, dtype=dtype, device=device)
    indexed = package.SparseConvTensor(features, grid.voxels, grid.shape, grid.n_clouds)
    indexed.indice_dict = layer(indexed).indice_dict

    def forward() -> Tensor:
        return layer(indexed.replace_feature(features)).features

    def both() -> tuple[Tensor, ...]:
        out = forward()
        return out, *torch.autograd.grad(out, (features, layer.weight), grad_out)

    return torch.no_grad()(forward), both


class VoxelResUNet(nn.Module):
    """The layers and widths of pcreg.models.resunet.ResUNet, as modules of a package.

    Its strided convolutions of 27 cells make a coarse voxel wherever a cell meets a fine one: that is more
    of them than there are cells of twice the size.
    """

    def __init__(self, package: ModuleType, architecture: Architecture):
        super().__init__()
        self.package = package
        e, d = architecture.encoder, architecture.decoder
        stem = package.SubMConv3d(1, e[0], architecture.stem_kernel_size, bias=False, indice_key="stem")
        self.encoder = nn.ModuleList([_Level(package, stem, e[0], 0)])
        for level in range(1, 4):
            down = package.SparseConv3d(
                e[level - 1], e[level], 3, stride=2, padding=1, bias=False, indice_key=f"down{level}"
            )
            self.encoder.append(_Level(package, down, e[level], level))
        self.decoder = nn.ModuleList()
        for level, channels in zip((2, 1, 0), (e[3], d[3] + e[2], d[2] + e[1]), strict=True):
            width = d[level + 1]
            up = package.SparseInverseConv3d(channels, width, 3, indice_key=f"down{level + 1}", bias=False)
            self.decoder.append(_Level(package, up, width, level))
        self.conv1_tr = nn.Linear(d[1] + e[0], d[0], bias=False)
        self.final = nn.Linear(d[0], architecture.out_channels)

    def forward(self, grid: VoxelGrid) -> Tensor:
        """The descriptors (N, out_channels), of unit length, of the voxels; indices are built on the way."""
        ones = self.final.weight.new_ones(len(grid.voxels), 1)
        out = self.package.SparseConvTensor(ones, grid.voxels, grid.shape, grid.n_clouds)
        finer = []
        for level in self.encoder:
            out = level(out)
            finer.append(out.features)
        finer.pop()
        for level in self.decoder:
            out = level(out)
            out = out.replace_feature(torch.cat([out.features, finer.pop()], 1))
        features = self.final(torch.relu(self.conv1_tr(out.features)))
        return nn.functional.normalize(features)


class _Level(nn.Module):
    """A convolution onto a level, a norm, and a residual block."""

    def __init__(self, package: ModuleType, onto: nn.Module, channels: int, level: int):
        super().__init__()
        self.onto = onto
        self.convs = nn.ModuleList(
            package.SubMConv3d(channels, channels, 3, bias=False, indice_key=f"level{level}")
            for _ in range(2)
        )
        self.norms = nn.ModuleList(make_norm(channels) for _ in range(3))

    def forward(self, x):
        x = self.onto(x)
        features = self.norms[0](x.features)
        out = self.convs[0](x.replace_feature(features))
        out = self.convs[1](out.replace_feature(torch.relu(self.norms[1](out.features))))
        return out.replace_feature(torch.relu(self.norms[2](out.features) + features))
