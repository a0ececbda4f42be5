"""Time the operators against a dense product of the same rows and against a plain scatter.

    python benchmarks/bench_operators.py [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...] [--json FILE]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one.

    dense         one torch.matmul of all T rows, gathered beforehand
    scatter       gather, multiply and index_add per kernel cell
    forward, both point_conv, triplets built, without and with the gradients; of dense: in dense times
    of bound      the lower bound of the time, by arithmetic or by memory, over the measured one
    spconv, spconv-triton  a convolution of the voxels of the same points by these packages, where they are
                  installed, its indices built, without and with the gradients
    MiB           allocated at the peak of a call beyond what it returns

All columns of a row are measured in turn, in one process; the table gives medians in milliseconds.
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from report import Report, parser, run
from sparse_convolution import PRECISIONS as VOXEL_PRECISIONS
from sparse_convolution import VoxelGrid, convolution, installed
from timing import PRECISIONS, medians, memory
from torch import Tensor
from workload import Workload, load

from pcreg.kernels.conv import arrange, point_conv
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Triplets
from pcreg.runtime.device import choose_device

CPU_CHANNELS = [(32, 32), (64, 64), (128, 128)]
CHANNELS = {
    "cpu": {"float32": CPU_CHANNELS},
    "cuda": {
        "float32": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
        "float16": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256), (512, 512)],
    },
}
CHANNELS["cuda"]["bfloat16"] = CHANNELS["cuda"]["float16"]
DATAFLOWS = {"Tiles": "output", "Buckets": "plain"}


def main() -> None:
    options = parse()
    device = torch.device(choose_device("auto"))
    torch.set_num_threads(options.threads)
    workloads = [load(options.cloud, voxel, device) for voxel in options.voxel]
    report = Report(device, options.json)
    report.content["ceilings"] = ceilings = measure_ceilings(device, options)
    report.facts(ceilings)
    for workload in workloads:
        triplets, voxel = workload.search(), f"{workload.size:g} m"
        report.content[f"triplets at {voxel}"] = facts = describe(workload, triplets)
        report.facts(facts)
        report.section(f"operators at {voxel}", rows(workload, triplets, ceilings, options))


def describe(workload: Workload, triplets: Triplets) -> dict[str, float]:
    device, tiles = workload.voxels.device, triplets.tiles

    def build_tiles() -> Tiles:
        return Tiles.build(triplets.i, triplets.j, triplets.k_offsets, triplets.n_out)

    return {
        "points": triplets.n_out,
        "triplets": len(triplets),
        "buckets": len(triplets.buckets.i),
        "shared buckets": len(tiles.shared_size),
        "points in shared buckets": int(tiles.shared_size.sum()),
        "triplets MiB": 8 * len(triplets) / 2**20,
        "tiles MiB": sum(tensor.nbytes for tensor in tiles.tensors()) / 2**20,
        "search ms": medians([workload.search], 5, device)[0],
        "tiles ms": medians([build_tiles], 5, device)[0],
    }


def rows(workload: Workload, triplets: Triplets, ceilings: dict[str, float], options) -> Iterator[dict]:
    kind = workload.voxels.device.type
    for precision in options.precision:
        for C, M in options.channels or CHANNELS[kind].get(precision, CPU_CHANNELS):
            yield row(workload, triplets, precision, C, M, ceilings, options.runs)


def row(workload: Workload, triplets: Triplets, precision, C, M, ceilings, runs) -> dict:
    device, dtype = workload.voxels.device, PRECISIONS[precision]
    generator = torch.Generator(device).manual_seed(0)

    def values(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device).to(dtype)

    features, weight = values(triplets.n_in, C), values(triplets.n_cells, 1, C, M)
    grad_out = values(triplets.n_out, M)
    trained = features.clone().requires_grad_(), weight.clone().requires_grad_()

    def forward() -> Tensor:
        return point_conv(features, weight, triplets)

    def both() -> tuple:
        out = point_conv(*trained, triplets)
        return out, *torch.autograd.grad(out, trained, grad_out)

    functions = {
        "forward": forward,
        "both": both,
        "dense": dense_product(features, weight, triplets),
        "scatter": gather_multiply_scatter(features, weight, triplets),
    }
    packages = installed(device)
    grid = VoxelGrid.of(workload.voxels, workload.cloud.lengths)
    if precision in VOXEL_PRECISIONS:
        for name, package in packages.items():
            functions[name], functions[f"{name} both"] = convolution(package, grid, C, M, dtype)
    times = dict(zip(functions, medians(functions.values(), runs, device), strict=True))
    bound = bound_ms(triplets, 2 * C * M, features, grad_out, weight, precision, ceilings)
    return {
        "precision": precision,
        "C": C,
        "M": M,
        "dataflow": DATAFLOWS[type(arrange(triplets, dtype)).__name__],
        "dense": times["dense"],
        "scatter": times["scatter"],
        "forward": times["forward"],
        "of dense": times["forward"] / times["dense"],
        "both": times["both"],
        "both of dense": times["both"] / times["dense"],
        **{name: times.get(name) for package in packages for name in (package, f"{package} both")},
        "TFLOP/s": len(triplets) * 2 * C * M / times["forward"] / 1e9,
        "of bound": bound / times["forward"],
        "forward MiB": memory(forward, device)[1],
        "both MiB": memory(both, device)[1],
    }


def bound_ms(triplets, products, features, out, weight, precision, ceilings) -> float:
    """A lower bound: one product per bucket, and each input read and each output written once."""
    arithmetic = len(triplets.buckets.i) * products / ceilings[f"{precision} TFLOP/s"] / 1e9
    read_once = features.nbytes + out.nbytes + weight.nbytes + triplets.j.nbytes
    return max(arithmetic, read_once / ceilings["copy GB/s"] / 1e6)


def measure_ceilings(device: torch.device, options) -> dict[str, float]:
    """Rates of a large copy (bytes read and written) and of large matrix products, measured."""
    runs, on_gpu = options.runs, device.type == "cuda"
    size, n = (2**28, 8192) if on_gpu else (2**25, 1024)
    source = torch.randn(size, device=device)
    target = torch.empty_like(source)
    (ms,) = medians([lambda: target.copy_(source)], runs, device)
    ceilings = {"copy GB/s": 8 * size / ms / 1e6}
    for precision in PRECISIONS if on_gpu else options.precision:
        a, b = (torch.randn(n, n, device=device).to(PRECISIONS[precision]) for _ in range(2))
        (ms,) = medians([lambda a=a, b=b: a @ b], runs, device)
        ceilings[f"{precision} TFLOP/s"] = 2 * n**3 / ms / 1e9
    if on_gpu:  # point_conv takes six bfloat16 products for one of float32
        of_parts = ceilings["bfloat16 TFLOP/s"] / 6
        ceilings["float32 TFLOP/s"] = max(ceilings["float32 TFLOP/s"], of_parts)
    return ceilings


def dense_product(features: Tensor, weight: Tensor, triplets: Triplets) -> Callable[[], Tensor]:
    """One matrix product of all T rows, gathered beforehand: gathering and reducing cost nothing."""
    gathered = features[triplets.j.long()]
    return lambda: gathered @ weight[0, 0]


def gather_multiply_scatter(features: Tensor, weight: Tensor, triplets: Triplets) -> Callable[[], Tensor]:
    """Per kernel cell: gather the rows, multiply, add to the output. Holds T_k rows at a time."""
    segments = [(i.long(), j.long()) for i, j in triplets.segments()]

    def convolve() -> Tensor:
        out = features.new_zeros(triplets.n_out, weight.shape[3])
        for k, (i, j) in enumerate(segments):
            out.index_add_(0, i, features[j] @ weight[k, 0])
        return out

    return convolve


def channel_pair(text: str) -> tuple[int, int]:
    C, M = map(int, text.split(":"))
    return C, M


def parse() -> argparse.Namespace:
    made = parser(__doc__, cloud=True)
    made.add_argument("--voxel", type=float, nargs="+", default=[0.025], help="metres (default: 0.025)")
    made.add_argument(
        "--channels", nargs="+", type=channel_pair, metavar="C:M", help="default: those of the network"
    )
    made.add_argument("--precision", nargs="+", choices=PRECISIONS, help="default: all of the device")
    made.add_argument("--runs", type=int, help="default: 20 on a GPU, 5 on a CPU")
    options = made.parse_args()
    on_gpu = torch.cuda.is_available()
    options.precision = options.precision or list(CHANNELS["cuda" if on_gpu else "cpu"])
    options.runs = options.runs or (20 if on_gpu else 5)
    return options


if __name__ == "__main__":
    run(main)
