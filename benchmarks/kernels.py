"""Time convolutions beside a dense product, and index building beside spconv.

    python benchmarks/kernels.py operators [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...]
    python benchmarks/kernels.py index [CLOUD] [--voxel 0.025 0.0125]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one. spconv and spconv-triton are measured on a GPU where they are installed.

    operators  point_conv on built triplets, without and with gradients, beside one product of all T
               gathered rows and a convolution of the same voxels by spconv; MiB at the peak beyond the result
    index      all levels and triplets that a network builds, on native points and on voxels, beside the sum
               of what spconv spends on indices in one forward pass of the same network

Milliseconds are medians; those of `index` are of the clock, from call to result.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from report import PRECISIONS, Value, keep, load, medians, parser, peak_mib, run, wall_ms
from torch import Tensor, nn

from pcreg.kernels.conv import point_conv
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv, make_norm
from pcreg.models.weights_file import Architecture
from pcreg.runtime.device import choose_device

PEERS = {"spconv": "spconv", "spconv-triton": "spconv_triton"}
PEER_PRECISIONS = ("float32", "float16")  # spconv has no bfloat16
CHANNELS = {
    "cpu": [(32, 32), (64, 64), (128, 128)],
    "cuda": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
}
DEVICE = choose_device("auto")
SNAP = {"native": False, "voxel": True}


@dataclass(frozen=True)
class VoxelGrid:
    """The occupied voxels of a batch of clouds, as spconv takes them."""

    voxels: Tensor  # (N, 4) int32: cloud, x, y, z
    shape: list[int]
    n_clouds: int

    @staticmethod
    def of(clouds: PointBatch, size: float) -> "VoxelGrid":
        """The voxels of clouds with one point in each."""
        numbers = torch.arange(len(clouds.lengths), device=clouds.points.device)
        cloud = torch.repeat_interleave(numbers, clouds.lengths)
        cells = torch.floor(clouds.points.double() / size).long()
        cells = cells - cells.amin(0)
        voxels = torch.cat([cloud[:, None], cells], 1).int()
        return VoxelGrid(voxels, (cells.amax(0) + 1).tolist(), len(clouds.lengths))


class VoxelResUNet(nn.Module):
    """The layers and widths of pcreg.models.resunet.ResUNet, as modules of a peer.

    Its strided convolutions of 27 cells make more coarse voxels than there are cells of twice the size.
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
        """Unit descriptors (N, out_channels) of the voxels; indices are built on the way."""
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
        return nn.functional.normalize(self.final(torch.relu(self.conv1_tr(out.features))))


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


def main() -> None:
    made, _ = parser(__doc__)
    made.add_argument("verb", choices=VERBS)
    made.add_argument("--channels", nargs="+", metavar="C:M", help="default: those of the network")
    precision, runs = (["float32"], 5) if DEVICE == "cpu" else (list(PRECISIONS), 20)
    options = parsed(made, voxel=[0.025], precision=precision, runs=runs)
    options.channels = [tuple(map(int, each.split(":"))) for each in options.channels or ()]
    keep(VERBS[options.verb](options), options.out / f"{options.verb}.json", options.device)


def operators(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for voxel in options.voxel:
        cloud = load(options.cloud, voxel, options.device)
        triplets = native_triplets(cloud.points, cloud.points, cloud.lengths, cloud.lengths, voxel)
        for precision in options.precision:
            for C, M in options.channels or CHANNELS[options.device]:
                yield operator_row(cloud, voxel, triplets, precision, C, M, options)


def operator_row(
    cloud: PointBatch, voxel: float, triplets: Triplets, precision: str, C: int, M: int, options
) -> dict[str, Value]:
    device, dtype = options.device, PRECISIONS[precision]
    generator = torch.Generator(device).manual_seed(0)
    features = torch.randn(triplets.n_in, C, generator=generator, device=device).to(dtype)
    grad_out = torch.randn(triplets.n_out, M, generator=generator, device=device).to(dtype)
    weight = PointConv(C, M).weight.detach().to(device, dtype)
    trained = features.clone().requires_grad_(), weight.clone().requires_grad_()
    gathered, cell = features[triplets.j.long()], weight.reshape(-1, C, M)[0]

    def forward() -> Tensor:
        return point_conv(features, weight, triplets)

    def both() -> tuple[Tensor, ...]:
        out = point_conv(*trained, triplets)
        return out, *torch.autograd.grad(out, trained, grad_out)

    functions = {"dense": lambda: gathered @ cell, "forward": forward, "both": both}
    for name, package in peers(device).items() if precision in PEER_PRECISIONS else ():
        pair = peer_convolution(package, VoxelGrid.of(cloud, voxel), C, M, dtype)
        functions |= dict(zip((name, f"{name} both"), pair, strict=True))
    times = medians(functions, options.runs, device, launched=True)
    return {
        "m": voxel,
        "points": triplets.n_out,
        "triplets": len(triplets),
        "precision": precision,
        "C -> M": f"{C} -> {M}",
        **times,
        "of dense": times["forward"] / times["dense"],
        "both of dense": times["both"] / times["dense"],
        "TFLOP/s": len(triplets) * 2 * C * M / times["forward"] / 1e9,
        "forward MiB": peak_mib(forward, device),
        "both MiB": peak_mib(both, device),
    }


def peer_convolution(
    package: ModuleType, grid: VoxelGrid, C: int, M: int, dtype: torch.dtype
) -> tuple[Callable[[], Tensor], Callable[[], tuple[Tensor, ...]]]:
    """A convolution of 27 cells with its indices built: forward, and with the gradients."""
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


def index(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for voxel in options.voxel:
        cloud = load(options.cloud, voxel, options.device)
        builds = {name: builder(cloud, voxel, name) for name in SNAP}
        times = medians(builds, options.runs, options.device)
        for name, build in builds.items():
            times[f"{name} MiB"] = peak_mib(build, options.device)
        for name, package in peers(options.device).items():
            times[name] = peer_index_ms(package, VoxelGrid.of(cloud, voxel), Architecture(voxel), options)
        yield {"m": voxel, "points": len(cloud), **times}


def builder(cloud: PointBatch, voxel: float, name: str) -> Callable[[], Pyramid]:
    """The function that builds what the network needs of a cloud with one point per voxel."""
    geometry = Architecture(voxel, snap=SNAP[name]).geometry
    points = voxel * torch.floor(cloud.points.double() / voxel) if SNAP[name] else cloud.points
    given = PointBatch(points.to(cloud.points.dtype), cloud.lengths)
    return lambda: Pyramid.build(given, geometry)


def peer_index_ms(package: ModuleType, grid: VoxelGrid, architecture: Architecture, options) -> float:
    """Milliseconds that a forward pass spends on building indices, the median of some passes."""
    device = options.device
    network = VoxelResUNet(package, architecture).to(device).eval()
    spent: list[float] = []
    totals = []
    with torch.inference_mode(), patch.multiple(package.ops, **_index_timers(package, device, spent)):
        for _ in range(3 + options.runs):
            spent.clear()
            network(grid)
            totals.append(sum(spent))
    return statistics.median(totals[3:])


def _index_timers(package: ModuleType, device: str, spent: list[float]) -> dict[str, Callable[..., object]]:
    """Functions by which a peer finds its pairs, which add milliseconds to `spent`."""

    def timed(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments, **options):
            results = []
            spent.append(wall_ms(lambda: results.append(function(*arguments, **options)), device))
            return results[0]

        return call

    found = vars(package.ops)
    return {name: timed(each) for name, each in found.items() if name.startswith("get_indice_pairs")}


def peers(device: str) -> dict[str, ModuleType]:
    """The packages that can be measured, by name."""
    if device == "cpu":
        return {}
    return {name: import_module(f"{root}.pytorch") for name, root in PEERS.items() if find_spec(root)}


VERBS = {"operators": operators, "index": index}


def parsed(made: argparse.ArgumentParser, **defaults: Any) -> argparse.Namespace:
    """The options of a parser and those on the cloud, with their defaults, and on the device."""
    made.add_argument("cloud", nargs="?", metavar="CLOUD")
    made.add_argument("--voxel", type=float, nargs="+", help="metres (default: %(default)s)")
    made.add_argument("--precision", nargs="+", choices=PRECISIONS, help="default: %(default)s")
    made.add_argument("--runs", type=int, help="default: %(default)s")
    made.set_defaults(device=DEVICE, **defaults)
    return made.parse_args()


if __name__ == "__main__":
    run(main)
