"""Time the network in inference, on native points and on voxels.

    python benchmarks/network.py [CLOUD] [--voxel 0.025 ...] [--batch 1 8]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room): fragments of
it, alone and in a batch, and the whole. Runs on the GPU if there is one. `index` builds all levels and
triplets, `forward` runs the network on them, `both` one after the other. Wall-clock milliseconds until the
device has finished, medians; MiB at the peak.
"""

import argparse
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from report import DEVICE, Value, keep, load, make_parser, medians, parsed, peak_mib, run

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import Architecture

SNAP = {"native": False, "voxel": True}


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("--fragment", type=int, default=20_000, help="points of one")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="fragments at once")
    voxel = 0.05 if DEVICE == "cpu" else 0.025
    options = parsed(parser, voxel=[voxel], runs=15)
    keep(rows(options), options, "forward", options.device)


def rows(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for voxel in options.voxel:
        whole = load(options.cloud, voxel, options.device)
        clouds = {
            f"{count} x {options.fragment:,}": fragments(whole, options.fragment, count)
            for count in options.batch
        }
        for name, batch in [*clouds.items(), ("whole", whole)]:
            with torch.inference_mode():
                yield from forward_rows(name, batch, voxel, options)


def forward_rows(clouds: str, batch: PointBatch, voxel: float, options) -> Iterator[dict[str, Value]]:
    device, functions = options.device, {}
    for name, snap in SNAP.items():
        architecture = Architecture(voxel, snap=snap)
        network = ResUNet(architecture).to(device).eval()
        build = partial(Pyramid.build, batch, architecture)
        built = build()
        functions |= {
            f"{name} index": build,
            f"{name} forward": lambda network=network, built=built: network(built),
            f"{name} both": lambda network=network, build=build: network(build()),
        }
    times = medians(functions, options.runs, device)
    for name in SNAP:
        yield {
            "clouds": clouds,
            "points": len(batch),
            "engine": name,
            **{part: times[f"{name} {part}"] for part in ("index", "forward", "both")},
            "peak MiB": peak_mib(functions[f"{name} both"], device),
        }


def fragments(whole: PointBatch, size: int, count: int) -> PointBatch:
    """So many clouds of the points nearest to random ones, as views of places are."""
    rng, points = np.random.default_rng(0), whole.points.double().cpu().numpy()
    size = min(size, len(points))
    cut = []
    for centre in rng.integers(len(points), size=count):
        distance = np.square(points - points[centre]).sum(1)
        cut.append(points[np.sort(np.argpartition(distance, size - 1)[:size])])
    return PointBatch.from_clouds(cut).to(whole.points.device)


if __name__ == "__main__":
    run(main)
