"""Time both dataflows, and a mix, on denser and sparser neighbourhoods: where the rule comes from.

    python benchmarks/bench_dataflow.py [CLOUD] [--voxel 0.025]

Needs a GPU. "rows per triplet" is K N / T, by which the rule of kernels/dataflow.py decides. The mix takes
the kernel cells with the most triplets output-stationary and the others weight-stationary, at the best
of several splits. "up" is the decoder's way from a level of twice the voxel. Milliseconds, medians.
"""

import argparse
from pathlib import Path

import torch
from timing import medians
from torch import Tensor
from workload import PRECISIONS, Workload, load, run

from pcreg.kernels.grid import grid_sample
from pcreg.kernels.stencil import default_radius, native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.runtime.errors import InputError

# fineness and radius, in units of the default one; None: up
NEIGHBOURHOODS = [(3, 1.0), (5, 1.0), (3, None), (3, 0.75), (3, 0.6), (5, 0.65), (3, 0.5), (5, 0.5), (7, 0.5)]
SHARES = [0.1, 0.2, 0.4, 0.6, 0.8]  # of the cells, output-stationary in the mix


def main() -> None:
    options = parse()
    if not torch.cuda.is_available():
        raise InputError("this benchmark needs an NVIDIA GPU and finds none; run it on a machine with one")
    device = torch.device("cuda")
    workload = load(options.cloud, options.voxel, device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, medians of {options.runs}")
    print(
        "   K  radius  triplets per point  rows per triplet  precision  channels   output   weight   best mix"
    )
    for kernel_size, scale in NEIGHBOURHOODS:
        triplets = search(workload, kernel_size, scale) if scale else up(workload)
        for precision in ("float16", "float32"):
            for channels in (64, 128):
                row = measure(triplets, PRECISIONS[precision], channels, options.runs)
                print(
                    f"{triplets.n_cells:4} {scale or 'up':>7} {len(triplets) / triplets.n_out:19.1f} "
                    f"{triplets.n_cells * triplets.n_out / len(triplets):17.2f} {precision:>10} {channels:9} "
                    + " ".join(f"{ms:8.3f}" for ms in row),
                    flush=True,
                )


def measure(triplets: Triplets, dtype: torch.dtype, channels: int, runs: int) -> list[float]:
    from pcreg.kernels.triton import output_stationary, weight_stationary  # these need Triton

    device = triplets.i.device
    features = torch.randn(triplets.n_in, channels, device=device).to(dtype)
    weight = torch.randn(triplets.n_cells, 1, channels, channels, device=device).to(dtype)
    most_first = torch.diff(triplets.k_offsets).argsort(descending=True)
    mixes = []
    for share in SHARES:
        n = round(share * triplets.n_cells)
        dense, sparse = only(triplets, most_first[:n]), only(triplets, most_first[n:])
        weights = weight[most_first[:n]], weight[most_first[n:]]
        tiles = dense.tiles

        def mix(j=dense.j, tiles=tiles, sparse=sparse, weights=weights) -> Tensor:
            out = output_stationary.mvmr(features, weights[0], j, tiles, triplets.n_out)
            return out.add_(weight_stationary.mvmr(features, weights[1], sparse))

        mixes.append(mix)
    output, weight_first, *mixed = medians(
        [
            lambda: output_stationary.mvmr(features, weight, triplets.j, triplets.tiles, triplets.n_out),
            lambda: weight_stationary.mvmr(features, weight, triplets),
            *mixes,
        ],
        runs,
        device,
    )
    return [output, weight_first, min(mixed)]


def only(triplets: Triplets, cells: Tensor) -> Triplets:
    """The triplets of some kernel cells, which are then numbered in the order of `cells`."""
    new = torch.full((triplets.n_cells,), -1, device=cells.device)
    new[cells] = torch.arange(len(cells), device=cells.device)
    k = new[triplets.cell_of_triplets()]
    kept = k >= 0
    i, j = triplets.i[kept].long(), triplets.j[kept].long()
    return Triplets.from_unsorted(i, j, k[kept], triplets.n_out, triplets.n_in, len(cells))


def search(workload: Workload, kernel_size: int, scale: float) -> Triplets:
    points, lengths = workload.cloud.points, workload.cloud.lengths
    radius = scale * default_radius(workload.size, kernel_size)
    return native_triplets(points, points, lengths, lengths, workload.size, kernel_size, radius)


def up(workload: Workload) -> Triplets:
    points, lengths = workload.cloud.points, workload.cloud.lengths
    rows = grid_sample(points, lengths, 2 * workload.size)
    coarse = torch.tensor([len(rows)], device=points.device)
    return native_triplets(points[rows], points, coarse, lengths, workload.size).transposed


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
    parser.add_argument("--voxel", type=float, default=0.025, help="metres (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
