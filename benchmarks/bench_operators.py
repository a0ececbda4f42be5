"""Time the operators against a dense product of the same rows and against other engines.

    python benchmarks/bench_operators.py [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...] [--json FILE]

CLOUD is any point cloud file, thinned to one point per voxel (default: a simulated room). Runs on the
GPU if there is one.

    dense         one torch.matmul of all T rows, gathered beforehand
    per triplet   a program per triplet, as the paper lists it (float32, GPU)
    scatter       gather, multiply and index_add per kernel cell
    spconv        on the voxels of the same points, indices built, if spconv is installed
    forward, + backward    point_conv, triplets built; of dense: its share of the dense time
    of bound      the least possible time, by arithmetic or by memory, over the measured one

All columns of a row are measured in turn, in one process; the table gives medians in milliseconds.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from baselines import dense_product, gather_multiply_scatter, spconv_convolution
from timing import extra_memory, medians
from workload import PRECISIONS, Workload, describe_machine, load, measure_ceilings, run

from pcreg.kernels.conv import point_conv
from pcreg.kernels.dataflow import arrange
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Triplets
from pcreg.runtime.device import choose_device
from pcreg.runtime.files import replacing

CPU_CHANNELS = [(32, 32), (64, 64), (128, 128)]
CHANNELS = {
    "cpu": {"float32": CPU_CHANNELS},
    "cuda": {
        "float32": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
        "float16": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256), (512, 512)],
    },
}
CHANNELS["cuda"] |= {"tf32": CHANNELS["cuda"]["float32"], "bfloat16": CHANNELS["cuda"]["float16"]}
LARGEST_PER_TRIPLET = 256 * 256  # C M; beyond it takes seconds


@dataclass
class Row:
    """Milliseconds; None where it does not apply."""

    precision: str
    C: int
    M: int
    dataflow: str
    dense: float
    per_triplet: float | None
    scatter: float
    spconv: float | None
    spconv_both: float | None
    forward: float
    both: float
    teraflops: float  # of T products
    of_bound: float
    extra_forward: float | None  # MiB
    extra_both: float | None


def main() -> None:
    options = parse()
    device = torch.device(choose_device("auto"))
    torch.set_num_threads(options.threads)
    machine = describe_machine(device)
    print(", ".join(f"{key} {value}" for key, value in machine.items()) + f", medians of {options.runs}")
    ceilings = measure_ceilings(device, options.runs)
    report = {"machine": machine, "ceilings": ceilings, "clouds": []}
    for voxel in options.voxel:
        report["clouds"].append(bench_cloud(load(options.cloud, voxel, device), ceilings, options))
    if options.json:
        with replacing(options.json) as path:
            path.write_text(json.dumps(report, indent=1))


def bench_cloud(workload: Workload, ceilings: dict[str, float], options: argparse.Namespace) -> dict:
    device = workload.voxels.device
    triplets = workload.search()

    def build_tiles() -> Tiles:
        return Tiles.build(triplets.i, triplets.j, triplets.k_offsets, triplets.n_out)

    facts = {
        "voxel": workload.size,
        "points": triplets.n_out,
        "triplets": len(triplets),
        "buckets": len(triplets.buckets.i),
        "shared_buckets": len(triplets.tiles.shared_size),
        "points_in_shared_buckets": int(triplets.tiles.shared_size.sum()),
        "triplets_mib": 8 * len(triplets) / 2**20,
        "search_ms": medians([workload.search], 5, device)[0],
        "tiles_ms": medians([build_tiles], 5, device)[0],
        "tiles_mib": sum(tensor.nbytes for tensor in triplets.tiles.tensors()) / 2**20,
    }
    print("\n" + ", ".join(f"{key} {value:.6g}" for key, value in facts.items()))
    print(HEADER)
    rows = []
    for precision in options.precision:
        for C, M in options.channels or CHANNELS[device.type].get(precision, CPU_CHANNELS):
            rows.append(bench_row(workload, triplets, precision, C, M, ceilings, options.runs))
            print(line(rows[-1]), flush=True)
    return {**facts, "rows": [asdict(row) for row in rows]}


def bench_row(workload: Workload, triplets: Triplets, precision, C, M, ceilings, runs) -> Row:
    device, dtype, tf32 = workload.voxels.device, PRECISIONS[precision], precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    generator = torch.Generator(device).manual_seed(0)

    def values(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device).to(dtype)

    features, weight = values(triplets.n_in, C), values(triplets.n_cells, 1, C, M)
    grad_out = values(triplets.n_out, M)
    trained = features.clone().requires_grad_(), weight.clone().requires_grad_()

    def forward() -> torch.Tensor:
        return point_conv(features, weight, triplets, tf32)

    def both() -> tuple:
        out = point_conv(*trained, triplets, tf32)
        return out, *torch.autograd.grad(out, trained, grad_out)

    functions = {
        "forward": forward,
        "both": both,
        "dense": dense_product(features, weight, triplets),
        "scatter": gather_multiply_scatter(features, weight, triplets),
    }
    if device.type == "cuda" and precision == "float32" and C * M <= LARGEST_PER_TRIPLET:
        from per_triplet import program_per_triplet

        functions["per_triplet"] = program_per_triplet(features, weight, triplets)
    if device.type == "cuda" and not tf32:
        spconv = spconv_convolution(workload.voxels, C, M, dtype)
        functions.update(zip(["spconv", "spconv_both"], spconv or [], strict=False))
    times = dict(zip(functions, medians(functions.values(), runs, device), strict=True))
    products = 2 * C * M
    dataflow = type(arrange(triplets, dtype)).__name__
    return Row(
        precision,
        C,
        M,
        {"Tiles": "output", "NoneType": "weight", "Buckets": "plain"}[dataflow],
        times["dense"],
        times.get("per_triplet"),
        times["scatter"],
        times.get("spconv"),
        times.get("spconv_both"),
        times["forward"],
        times["both"],
        teraflops=len(triplets) * products / times["forward"] / 1e9,
        of_bound=least_ms(triplets, products, features, grad_out, weight, precision, ceilings)
        / times["forward"],
        extra_forward=extra_memory(forward, device),
        extra_both=extra_memory(both, device),
    )


def least_ms(triplets, products, features, out, weight, precision, ceilings) -> float:
    """No less than one product per bucket, and each input read and each output written once."""
    arithmetic = len(triplets.buckets.i) * products / ceilings[f"{precision}_teraflops"] / 1e9
    read_once = features.nbytes + out.nbytes + weight.nbytes + triplets.j.nbytes
    return max(arithmetic, read_once / ceilings["copy_gigabytes"] / 1e6)


HEADER = (
    "precision   C -> M    flow      dense  per triplet  scatter  spconv  + backward  forward  of dense"
    "  + backward  of dense  TFLOP/s  of bound  extra MiB"
)


def line(row: Row) -> str:
    def cell(value: float | None, width: int, digits: int = 3) -> str:
        return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"

    return (
        f"{row.precision:9} {row.C:3} -> {row.M:3} {row.dataflow:>7} {cell(row.dense, 10)} "
        f"{cell(row.per_triplet, 12)} {cell(row.scatter, 8)} "
        f"{cell(row.spconv, 7)} {cell(row.spconv_both, 11)} "
        f"{cell(row.forward, 8)} {cell(row.forward / row.dense, 9, 2)} {cell(row.both, 11)} "
        f"{cell(row.both / row.dense, 9, 2)} {cell(row.teraflops, 8, 1)} {cell(row.of_bound, 9, 2)} "
        f"{cell(row.extra_forward, 5, 0)} {cell(row.extra_both, 4, 0)}"
    )


def channel_pair(text: str) -> tuple[int, int]:
    C, M = map(int, text.split(":"))
    return C, M


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
    parser.add_argument("--voxel", type=float, nargs="+", default=[0.025], help="metres (default: 0.025)")
    parser.add_argument(
        "--channels", nargs="+", type=channel_pair, metavar="C:M", help="default: those of the network"
    )
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, help="default: all of the device")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--runs", type=int, help="default: 20 on a GPU, 5 on a CPU")
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    options.precision = options.precision or list(CHANNELS["cuda" if on_gpu else "cpu"])
    options.runs = options.runs or (20 if on_gpu else 5)
    return options


if __name__ == "__main__":
    run(main)
