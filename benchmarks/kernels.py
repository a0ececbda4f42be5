"""Time convolutions beside a dense product.

    python benchmarks/kernels.py [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one. `forward` and `both` are point_conv on built triplets, without and with gradients;
`dense` is one product of all T gathered rows. Milliseconds are medians; MiB at the peak beyond the result.
"""

import argparse
from collections.abc import Iterator

import torch
from report import DEVICE, Value, keep, load, make_parser, medians, parsed, peak_mib, run
from torch import Tensor

from pcreg.kernels.conv import point_conv
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv

PRECISIONS = {"cpu": ["float32"], "cuda": ["float32", "float16", "bfloat16"]}
CHANNELS = {
    "cpu": [(32, 32), (64, 64), (128, 128)],
    "cuda": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
}


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("--channels", nargs="+", metavar="C:M", help="default: those of the network")
    options = parsed(parser, voxel=[0.025], runs=5 if DEVICE == "cpu" else 20)
    options.channels = [tuple(map(int, each.split(":"))) for each in options.channels or ()]
    keep(operators(options), options, "operators", options.device)


def operators(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for voxel in options.voxel:
        cloud = load(options.cloud, voxel, options.device)
        triplets = native_triplets(cloud.points, cloud.points, cloud.lengths, cloud.lengths, voxel)
        for precision in PRECISIONS[options.device]:
            for C, M in options.channels or CHANNELS[options.device]:
                times = operator_row(triplets, precision, C, M, options)
                yield {"m": voxel, "points": triplets.n_out, "triplets": len(triplets)} | times


def operator_row(triplets: Triplets, precision: str, C: int, M: int, options) -> dict[str, Value]:
    device, dtype = options.device, getattr(torch, precision)
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
    times = medians(functions, options.runs, device, launched=True)
    return {
        "precision": precision,
        "C -> M": f"{C} -> {M}",
        **times,
        "of dense": times["forward"] / times["dense"],
        "both of dense": times["both"] / times["dense"],
        "TFLOP/s": len(triplets) * 2 * C * M / times["forward"] / 1e9,
        "forward MiB": peak_mib(forward, device),
        "both MiB": peak_mib(both, device),
    }


if __name__ == "__main__":
    run(main)
