"""Time the operators against a dense product that does the same multiplications.

    python benchmarks/bench_operators.py [CLOUD] [--voxel 0.025] [--channels 32 64 128] [--threads N]

CLOUD is any point cloud file, thinned to one point per voxel (default: a generated room). The dense
column is torch.matmul on rows gathered beforehand, cell by cell: what remains when gathering and
reducing cost nothing. All columns are measured in turn within one run; the table gives medians.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch

from kernels.autograd import point_conv
from kernels.mvmr import mvmr
from kernels.stencil import native_triplets
from kernels.triplets import Triplets
from kernels.vvor import vvor
from pcreg.batch import PointBatch
from pcreg.cloud import read_cloud
from pcreg.descriptors import thin


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    points = load(options.cloud, options.voxel)
    start = perf_counter()
    triplets = native_triplets(points.points, points.points, points.lengths, points.lengths, options.voxel)
    searched = perf_counter() - start
    buckets = len(triplets.buckets.i)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32, median of {options.runs}")
    print(f"N = {len(points):,} points, T = {len(triplets):,} triplets, {buckets:,} buckets")
    print(f"triplets built in {1000 * searched:.0f} ms\n")
    print("milliseconds; speed = dense / forward\n")
    print("C -> M      dense   forward   speed   forward + backward   weight gradient")
    for channels in options.channels:
        print(row(channels, triplets, options.runs))


def row(channels: int, triplets: Triplets, runs: int) -> str:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(triplets.n_in, channels, generator=generator)
    weight = torch.randn(triplets.n_cells, 1, channels, channels, generator=generator) / channels
    grad_out = torch.randn(triplets.n_out, channels, generator=generator)
    gathered = [features[j] for _, j in triplets.segments()]
    trained = features.clone().requires_grad_(), weight.clone().requires_grad_()
    _ = triplets.transposed.buckets  # part of the hierarchy, not of the operator

    def dense() -> None:
        for k, rows in enumerate(gathered):
            _ = rows @ weight[k, 0]

    dense_ms, forward_ms, both_ms, vvor_ms = medians(
        [
            dense,
            lambda: mvmr(features, weight, triplets),
            lambda: torch.autograd.grad(point_conv(*trained, triplets), trained, grad_out),
            lambda: vvor(features, grad_out, triplets),
        ],
        runs,
    )
    speed = dense_ms / forward_ms
    return (
        f"{channels:3d} -> {channels:3d} {dense_ms:7.1f} {forward_ms:9.1f} {speed:6.2f}x "
        f"{both_ms:20.1f} {vvor_ms:17.1f}"
    )


def medians(functions: list[Callable[[], object]], runs: int) -> list[float]:
    """Milliseconds of each function, run in turn so that a drifting machine slows all of them."""
    times: list[list[float]] = [[] for _ in functions]
    for run in range(runs + 1):
        for function, measured in zip(functions, times, strict=True):
            start = perf_counter()
            function()
            if run > 0:  # the first is a warm-up
                measured.append(1000 * (perf_counter() - start))
    return [statistics.median(measured) for measured in times]


def load(path: Path | None, voxel: float) -> PointBatch:
    if path is None:
        from datasets.synthetic import SyntheticRooms

        cloud = SyntheticRooms(seed=0, count=1).cloud("room-0/source")
    else:
        cloud = read_cloud(path).points
    return PointBatch.from_clouds([cloud[thin(cloud, voxel)]])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
    parser.add_argument("--voxel", type=float, default=0.025, help="metres (default: %(default)s)")
    parser.add_argument("--channels", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
