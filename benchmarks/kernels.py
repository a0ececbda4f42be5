"""Time convolutions beside a dense product and spconv.

    python benchmarks/kernels.py [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one. `forward` and `both` are point_conv on built triplets, without and with gradients;
`dense` is one product of all T gathered rows. Where spconv and spconv-triton are installed, they convolve
the voxels of the same points on a GPU. Milliseconds are medians; MiB at the peak beyond the result.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from report import DEVICE, PRECISIONS, Value, keep, load, medians, parsed, parser, peak_mib, run
from torch import Tensor

from pcreg.kernels.conv import point_conv
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv

PEERS = {"spconv": "spconv", "spconv-triton": "spconv_triton"}
PEER_PRECISIONS = ("float32", "float16")  # spconv has no bfloat16
CHANNELS = {
    "cpu": [(32, 32), (64, 64), (128, 128)],
    "cuda": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
}


def main() -> None:
    made, _ = parser(__doc__)
    made.add_argument("--channels", nargs="+", metavar="C:M", help="default: those of the network")
    precision, runs = (["float32"], 5) if DEVICE == "cpu" else (list(PRECISIONS), 20)
    options = parsed(made, voxel=[0.025], precision=precision, runs=runs)
    options.channels = [tuple(map(int, each.split(":"))) for each in options.channels or ()]
    keep(operators(options), options, "operators", options.device)


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
        pair = peer_convolution(package, cloud, voxel, C, M, dtype)
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
    package: ModuleType, cloud: PointBatch, voxel: float, C: int, M: int, dtype: torch.dtype
) -> tuple[Callable[[], Tensor], Callable[[], tuple[Tensor, ...]]]:
    """A convolution of 27 cells with its indices built: forward, and with the gradients."""
    device = cloud.points.device
    cells = torch.floor(cloud.points.double() / voxel).int()
    cells -= cells.amin(0)
    voxels = torch.nn.functional.pad(cells, (1, 0))  # of cloud 0
    layer = package.SubMConv3d(C, M, 3, bias=False, indice_key="voxels").to(device, dtype)
    features = torch.randn(len(voxels), C, dtype=dtype, device=device, requires_grad=True)
    grad_out = torch.randn(len(voxels), M, dtype=dtype, device=device)
    indexed = package.SparseConvTensor(features, voxels, (cells.amax(0) + 1).tolist(), 1)
    indexed.indice_dict = layer(indexed).indice_dict

    def forward() -> Tensor:
        return layer(indexed.replace_feature(features)).features

    def both() -> tuple[Tensor, ...]:
        out = forward()
        return out, *torch.autograd.grad(out, (features, layer.weight), grad_out)

    return torch.no_grad()(forward), both


def peers(device: str) -> dict[str, ModuleType]:
    """The packages that can be measured, by name."""
    if device == "cpu":
        return {}
    return {name: import_module(f"{root}.pytorch") for name, root in PEERS.items() if find_spec(root)}


if __name__ == "__main__":
    run(main)
