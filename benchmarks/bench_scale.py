"""Time and memory of a convolution against the number of triplets, from 10^5 to 10^8.

    python benchmarks/bench_scale.py [CLOUD] [--voxel 0.025] [--most 1e8] [--json FILE]

float16, 64 -> 64 channels, forward and forward + backward; float32 on a CPU. The cloud is cut short for
few triplets and repeated, as a batch of several clouds, for many. Milliseconds are medians.
"""

import argparse
import json
from pathlib import Path

import torch
from clouds import cut_or_repeat
from timing import extra_memory, medians
from workload import describe_machine, load, run

from pcreg.kernels.conv import point_conv
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.stencil import native_triplets
from pcreg.runtime.device import choose_device
from pcreg.runtime.files import replacing

CHANNELS = 64


def main() -> None:
    options = parse()
    device = torch.device(choose_device("auto"))
    workload = load(options.cloud, options.voxel, device)
    machine = describe_machine(device)
    print(", ".join(f"{key} {value}" for key, value in machine.items()) + f", medians of {options.runs}\n")
    print(
        "     points     triplets   forward ms   per triplet ns   + backward ms   per triplet ns   extra MiB"
    )
    per_point = len(workload.search()) / len(workload.cloud)
    rows, T = [], 1e5
    while options.most * 1.01 >= T:
        rows.append(measure(cut_or_repeat(workload.cloud, round(T / per_point)), options.voxel, options.runs))
        print(line(**rows[-1]), flush=True)
        T *= 10**0.5
    if options.json:
        with replacing(options.json) as path:
            path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))


def measure(cloud: PointBatch, voxel: float, runs: int) -> dict:
    device = cloud.points.device
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    triplets = native_triplets(cloud.points, cloud.points, cloud.lengths, cloud.lengths, voxel)
    features = torch.randn(triplets.n_in, CHANNELS, device=device, dtype=dtype, requires_grad=True)
    shape = (triplets.n_cells, 1, CHANNELS, CHANNELS)
    weight = torch.randn(shape, device=device, dtype=dtype, requires_grad=True)

    def forward() -> torch.Tensor:
        return point_conv(features, weight, triplets)

    def both() -> tuple:
        out = forward()
        return out, *torch.autograd.grad(out, (features, weight), out.detach())

    forward_ms, both_ms = medians([torch.no_grad()(forward), both], runs, device)
    return {
        "points": len(cloud),
        "triplets": len(triplets),
        "forward": forward_ms,
        "both": both_ms,
        "extra": extra_memory(both, device),
    }


def line(points: int, triplets: int, forward: float, both: float, extra: float | None) -> str:
    return (
        f"{points:11,} {triplets:12,} {forward:12.3f} {1e6 * forward / triplets:16.4f} "
        f"{both:15.3f} {1e6 * both / triplets:16.4f} {'-' if extra is None else round(extra):>11}"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
    parser.add_argument("--voxel", type=float, default=0.025, help="metres (default: %(default)s)")
    parser.add_argument("--most", type=float, default=1e8, help="triplets (default: %(default)g)")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
