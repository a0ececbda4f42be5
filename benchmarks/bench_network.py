"""Time the whole network: one search, the pyramid, the forward pass, and a training step.

    python benchmarks/bench_network.py [CLOUD] [--voxel 0.025 ...] [--only SECTION ...] [--tables]
                                       [--json FILE]

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one; on a CPU in float32 on smaller clouds. Everything is compared with the same network
on voxels (`snap=True`); searches and the forward pass, on a GPU, also with spconv and spconv-triton on these
voxels, where they are installed: they build their indices within the forward pass, which counts as `both`.

    search     triplets of 27 cells of a whole cloud, on a GPU with their tiles
    pyramid    every sampling and search of the network
    forward    the network in inference mode, with and without its pyramid; gpu: of the device alone
    training   pyramids, forward, loss, backward and a step of SGD on a batch of pairs

Times are wall-clock milliseconds until the device has finished, medians over batches of different sizes:
`worst` is the longest of sizes seen before, `first` the longest of a size that was new. MiB are held
afterwards, `peak MiB` at most beyond that, weights and points left out. --tables writes index.json,
forward.json and step.json in docs/results, which benchmarks/pages.py puts into docs/benchmarks/network.md.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import torch
from network_tables import save_tables
from report import Report, parser, run
from sparse_convolution import PRECISIONS as VOXEL_PRECISIONS
from sparse_convolution import VoxelGrid, VoxelResUNet, installed
from sparse_convolution import search as search_voxel_grid
from timing import PRECISIONS, autocast, medians, memory, walls
from workload import Clouds, Pairs, fragments, load, pairs

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.stencil import native_triplets, voxel_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import convolve_in
from pcreg.models.resunet import Architecture, ResUNet
from pcreg.runtime.device import choose_device
from pcreg.training.losses import hardest_contrastive_loss

SNAP = {"native": False, "voxel": True}
N_CLOUDS = 3  # sizes of a whole cloud that are timed
SLEEP = 20  # ms, longer than it takes to launch a forward pass
TRAINED = {"cuda": ("float32", "bfloat16"), "cpu": ("float32",)}
DEFAULTS = {
    "cuda": {"voxel": [0.025], "fragment": 20_000, "batch": 8, "pairs": 4, "sizes": 5, "runs": 20},
    "cpu": {"voxel": [0.05], "fragment": 3000, "batch": 2, "pairs": 2, "sizes": 3, "runs": 3},
}


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    report = Report(options.device, options.json)
    for name in options.only:
        report.section(name, SECTIONS[name](options))
    if options.tables:
        words = ["CLOUD", "--voxel", *map(str, options.voxel)]
        words += ["--precision", *options.precision, "--tables", "--only", *options.only]
        save_tables(report.content, f"python benchmarks/bench_network.py {' '.join(words)}")


def searches(options: argparse.Namespace) -> Iterator[dict]:
    for voxel in options.voxel:
        workload = options.load(voxel)
        inputs = fragments(workload, len(workload.cloud), 1, N_CLOUDS)
        calls = {
            "native": lambda n, inputs=inputs: search(inputs[n]),
            "voxel": lambda n, inputs=inputs: search_voxels(inputs[n]),
        }
        grids = [grid(clouds) for clouds in inputs]
        for name, package in installed(options.device).items():
            calls[name] = lambda n, package=package, grids=grids: search_voxel_grid(package, grids[n])
        for name, facts in timed(calls, N_CLOUDS, options).items():
            found = calls[name](0)
            T = len(found) if isinstance(found, Triplets) else int((found >= 0).sum())
            yield {"voxel": voxel, "search": name, "points": len(inputs[0]), "T": T, **facts}


def search(clouds: Clouds) -> Triplets:
    points, lengths = clouds.native.points, clouds.native.lengths
    return native_triplets(points, points, lengths, lengths, clouds.size)


def search_voxels(clouds: Clouds) -> Triplets:
    cells, lengths = clouds.cells, clouds.native.lengths
    return voxel_triplets(cells, cells, lengths, lengths)


def grid(clouds: Clouds) -> VoxelGrid:
    return VoxelGrid.of(clouds.cells, clouds.native.lengths)


def pyramids(options: argparse.Namespace) -> Iterator[dict]:
    for label, inputs in batches(options):
        calls = {name: lambda n, name=name, inputs=inputs: index(name, inputs[n]) for name in SNAP}
        for name, facts in timed(calls, len(inputs), options).items():
            levels = " ".join(str(len(level)) for level in calls[name](0).levels)
            yield {"clouds": label, "engine": name, "levels": levels, **facts}


def forwards(options: argparse.Namespace) -> Iterator[dict]:
    for label, inputs in batches(options):
        for precision in options.precision:
            with torch.inference_mode():
                yield from forward_rows(label, precision, inputs, options)


def forward_rows(label: str, precision: str, inputs: list[Clouds], options) -> Iterator[dict]:
    device, functions, gpu = options.device, {}, {}
    for name, snap in SNAP.items():
        network = ResUNet(Architecture(inputs[0].size, snap=snap)).to(device).eval()
        network = convolve_in(network, PRECISIONS[precision])
        built = [index(name, clouds) for clouds in inputs]
        functions |= {
            f"{name} index": lambda n, name=name: index(name, inputs[n]),
            f"{name} forward": lambda n, network=network, built=built: network(built[n]),
            f"{name} both": lambda n, name=name, network=network: network(index(name, inputs[n])),
        }
        if device.type == "cuda":
            forward = partial(functions[f"{name} forward"], 0)
            (gpu[name],) = medians([forward], max(1, options.runs // 2), device, SLEEP)
    peers = installed(device) if precision in VOXEL_PRECISIONS else {}
    grids = [grid(clouds) for clouds in inputs] if peers else []
    for name, package in peers.items():
        network = VoxelResUNet(package, Architecture(inputs[0].size)).to(device, PRECISIONS[precision]).eval()
        functions[f"{name} both"] = lambda n, network=network: network(grids[n])
    times = walls(functions, len(inputs), options.runs, device)
    for name in (*SNAP, *peers):
        building, forward, both = (times.get(f"{name} {part}") for part in ("index", "forward", "both"))
        yield {
            "clouds": label,
            "precision": precision,
            "engine": name,
            "points": len(inputs[0]),
            "index": building and building.median,
            "forward": forward and forward.median,
            "worst": forward and forward.worst,
            "first": forward and forward.first,
            "gpu": gpu.get(name),
            "both": both.median,
            "both worst": both.worst,
            "both first": both.first,
            "peak MiB": memory(partial(functions[f"{name} both"], 0), device)[1],
        }


def trainings(options: argparse.Namespace) -> Iterator[dict]:
    workload = options.load(options.voxel[0])
    sizes = [round(options.fragment * (1 - 0.05 * n)) for n in range(min(4, options.sizes))]
    inputs = [pairs(workload, size, options.pairs, seed=n) for n, size in enumerate(sizes)]
    for precision in TRAINED[options.device.type]:
        steps = {name: training_step(name, precision, options) for name in SNAP}
        calls = {name: lambda n, step=step: step(inputs[n]) for name, step in steps.items()}
        for name, facts in timed(calls, len(inputs), options).items():
            yield {"precision": precision, "engine": name, "points": len(inputs[0]), **facts}


def training_step(name: str, precision: str, options: argparse.Namespace) -> Callable[[Pairs], None]:
    """As pcreg/training/trainer.py takes it, without its checks and logs; half precision is autocast."""
    device = options.device
    network = ResUNet(Architecture(options.voxel[0], snap=SNAP[name])).to(device).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.8, weight_decay=1e-4)
    generator = torch.Generator().manual_seed(0)
    sizes = 1024 * options.pairs, 256 * options.pairs

    def step(batch: Pairs) -> None:
        pyramid = index(name, batch.source, batch.target)
        with autocast(precision, device):
            features = pyramid.row_groups[0].split(network(pyramid))
            loss = hardest_contrastive_loss(*features, batch.matches, generator, *sizes).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def index(name: str, *groups: Clouds) -> Pyramid:
    geometry = Architecture(groups[0].size, snap=SNAP[name]).geometry
    batches = [clouds.snapped if SNAP[name] else clouds.native for clouds in groups]
    if len(batches) == 1:
        return Pyramid.build(batches[0], geometry)
    points, lengths = (torch.cat([getattr(each, of) for each in batches]) for of in ("points", "lengths"))
    return Pyramid.build(PointBatch(points, lengths), geometry, [len(each.lengths) for each in batches])


def timed(calls: dict[str, Callable[[int], object]], n_inputs: int, options) -> dict[str, dict]:
    """What the rows of calls say of time and memory."""
    times = walls(calls, n_inputs, options.runs, options.device)
    found = {}
    for name, call in calls.items():
        held, peak = memory(partial(call, 0), options.device)
        wall = times[name]
        ms = {"ms": wall.median, "worst": wall.worst, "first": wall.first}
        found[name] = {**ms, "MiB": held, "peak MiB": peak}
    return found


def batches(options: argparse.Namespace) -> Iterator[tuple[str, list[Clouds]]]:
    """What the network is run on: a fragment, a batch of them, and the whole cloud at each voxel."""
    voxel = options.voxel[0]
    for clouds in (1, options.batch):
        inputs = fragments(options.load(voxel), options.fragment, clouds, options.sizes)
        yield f"{clouds} x {options.fragment:,}", inputs
    for voxel in options.voxel:
        workload = options.load(voxel)
        yield f"whole, {voxel:g} m", fragments(workload, len(workload.cloud), 1, N_CLOUDS)


SECTIONS = {"search": searches, "pyramid": pyramids, "forward": forwards, "training": trainings}


def parse() -> argparse.Namespace:
    made = parser(__doc__, cloud=True)
    device = torch.device(choose_device("auto"))
    made.set_defaults(**DEFAULTS[device.type])
    made.add_argument("--voxel", type=float, nargs="+", help="metres; the first is the network's")
    made.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    made.add_argument("--fragment", type=int, help="points of one (default: %(default)s)")
    made.add_argument("--batch", type=int, help="fragments at once (default: %(default)s)")
    made.add_argument("--sizes", type=int, help="batches of different sizes (default: %(default)s)")
    made.add_argument("--pairs", type=int, help="of a training step (default: %(default)s)")
    made.add_argument("--precision", nargs="+", choices=PRECISIONS, help="of the forward pass")
    made.add_argument("--runs", type=int, help="(default: %(default)s)")
    made.add_argument("--tables", action="store_true", help="write the tables of the docs")
    options = made.parse_args()
    options.device = device
    options.precision = options.precision or (list(PRECISIONS) if device.type == "cuda" else ["float32"])
    options.load = lru_cache(partial(load, options.cloud, device=device))
    return options


if __name__ == "__main__":
    run(main)
