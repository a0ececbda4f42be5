"""Time the network in inference, on native points and on voxels, and its convolutions.

python benchmarks/network.py forward [CLOUD] [--voxel 0.025 ...] [--batch 1 8]
python benchmarks/network.py operators [CLOUD] [--voxel 0.025 ...] [--channels 64:64 ...]

forward    fragments of the cloud, alone and in a batch, and the whole cloud, until the device has finished:
           `index` builds all levels and triplets, `forward` runs the network on them, `both` does both
operators  `forward` and `both` are point_conv on given triplets, without and with gradients; `dense` is one
           product of all T gathered rows

CLOUD is any point cloud file, downsampled to one point per voxel (default: a simulated room). Runs on the
GPU if there is one. Milliseconds are medians; MiB at the peak beyond the result.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from report import Value, keep, make_parser, run
from torch import Tensor

from pcreg.datasets.simulated.indoor import record_scans
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.kernels.conv import point_conv
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import Architecture
from pcreg.runtime.device import choose_device

DEVICE = choose_device("auto")
SNAP = {"native": False, "voxel": True}
PRECISIONS = {"cpu": ["float32"], "cuda": ["float32", "float16", "bfloat16"]}
CHANNELS = {
    "cpu": [(32, 32), (64, 64), (128, 128)],
    "cuda": [(1, 32), (32, 32), (64, 64), (64, 128), (128, 128), (256, 256)],
}
WARM_UP = 3  # calls of each function before it is timed
SLEEP_MS = 20  # longer than the launch of a forward pass


def main() -> None:
    parser, verbs = make_parser(__doc__, *VERBS)
    on_cpu = DEVICE == "cpu"
    defaults = {"forward": (0.05 if on_cpu else 0.025, 15), "operators": (0.025, 5 if on_cpu else 20)}
    for verb, (voxel, runs) in defaults.items():
        verbs[verb].add_argument("cloud", nargs="?", metavar="CLOUD")
        verbs[verb].add_argument("--voxel", type=float, nargs="+", default=[voxel], help="metres")
        verbs[verb].add_argument("--runs", type=int, default=runs, help="default: %(default)s")
    verbs["forward"].add_argument("--fragment", type=int, default=20_000, help="points of one")
    verbs["forward"].add_argument("--batch", type=int, nargs="+", default=[1, 8], help="fragments at once")
    verbs["operators"].add_argument("--channels", nargs="+", metavar="C:M", help="default: the network's")
    options = parser.parse_args()
    keep(VERBS[options.verb](options), options, options.verb, DEVICE)


def forward(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for voxel in options.voxel:
        whole = load(options.cloud, voxel)
        clouds = {
            f"{count} x {options.fragment:,}": fragments(whole, options.fragment, count)
            for count in options.batch
        }
        for name, batch in [*clouds.items(), ("whole", whole)]:
            with torch.inference_mode():
                yield from forward_rows(name, batch, voxel, options.runs)


def forward_rows(clouds: str, batch: PointBatch, voxel: float, runs: int) -> Iterator[dict[str, Value]]:
    functions = {}
    for name, snap in SNAP.items():
        architecture = Architecture(voxel, snap=snap)
        network = ResUNet(architecture).to(DEVICE).eval()
        build = partial(Pyramid.build, batch, architecture)
        built = build()
        functions |= {
            f"{name} index": build,
            f"{name} forward": lambda network=network, built=built: network(built),
            f"{name} both": lambda network=network, build=build: network(build()),
        }
    times = medians(functions, runs)
    for name in SNAP:
        yield {
            "clouds": clouds,
            "points": len(batch),
            "engine": name,
            **{part: times[f"{name} {part}"] for part in ("index", "forward", "both")},
            "peak MiB": peak_mib(functions[f"{name} both"]),
        }


def operators(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    channels = [tuple(map(int, each.split(":"))) for each in options.channels or ()]
    for voxel in options.voxel:
        cloud = load(options.cloud, voxel)
        triplets = Pyramid.build(cloud, PyramidConfig(voxel, n_levels=1)).same[0]
        for precision in PRECISIONS[DEVICE]:
            for C, M in channels or CHANNELS[DEVICE]:
                times = operator_row(triplets, precision, C, M, options.runs)
                yield {"m": voxel, "points": triplets.n_out, "triplets": len(triplets)} | times


def operator_row(triplets: Triplets, precision: str, C: int, M: int, runs: int) -> dict[str, Value]:
    generator, dtype = torch.Generator(DEVICE).manual_seed(0), getattr(torch, precision)
    features = torch.randn(triplets.n_in, C, generator=generator, device=DEVICE).to(dtype)
    grad_out = torch.randn(triplets.n_out, M, generator=generator, device=DEVICE).to(dtype)
    weight = PointConv(C, M).weight.detach().to(DEVICE, dtype)
    trained = features.clone().requires_grad_(), weight.clone().requires_grad_()
    gathered, cell = features[triplets.j.long()], weight.reshape(-1, C, M)[0]

    def without_gradients() -> Tensor:
        return point_conv(features, weight, triplets)

    def both() -> tuple[Tensor, ...]:
        out = point_conv(*trained, triplets)
        return out, *torch.autograd.grad(out, trained, grad_out)

    functions = {"dense": lambda: gathered @ cell, "forward": without_gradients, "both": both}
    times = medians(functions, runs, launched=True)
    return {
        "precision": precision,
        "C -> M": f"{C} -> {M}",
        **times,
        "of dense": times["forward"] / times["dense"],
        "both of dense": times["both"] / times["dense"],
        "TFLOP/s": len(triplets) * 2 * C * M / times["forward"] / 1e9,
        "forward MiB": peak_mib(without_gradients),
        "both MiB": peak_mib(both),
    }


def load(path: Path | None, voxel: float) -> PointBatch:
    """The cloud in `path`, by default a simulated scan of a room, one point per voxel."""
    if path is None:
        points = record_scans(seed=0, index=0).clouds[0].double().numpy()
    else:
        points = read_cloud(path).points
    return PointBatch.from_clouds([points[voxel_downsample(points, voxel)]]).to(DEVICE)


def fragments(whole: PointBatch, size: int, count: int) -> PointBatch:
    """Cut `count` clouds, each of the `size` points nearest to a random point, as compact as scans."""
    rng, points = np.random.default_rng(0), whole.points.double().cpu().numpy()
    size = min(size, len(points))
    cut = []
    for centre in rng.integers(len(points), size=count):
        distance = np.square(points - points[centre]).sum(1)
        cut.append(points[np.sort(np.argpartition(distance, size - 1)[:size])])
    return PointBatch.from_clouds(cut).to(DEVICE)


def medians(
    functions: dict[str, Callable[[], object]], runs: int, launched: bool = False
) -> dict[str, float]:
    """Median wall-clock milliseconds of functions, called in turn.

    If `launched`, times between events on a GPU, without the launches.
    """
    wait = torch.cuda.synchronize if DEVICE != "cpu" else lambda: None

    def wall_ms(function: Callable[[], object]) -> float:
        wait()
        start = perf_counter()
        function()
        wait()
        return 1000 * (perf_counter() - start)

    for function in [*functions.values()] * (WARM_UP if DEVICE != "cpu" else 1):
        function()
    if DEVICE == "cpu" or not launched:
        times = [[wall_ms(each) for each in functions.values()] for _ in range(runs)]
    else:
        wait()
        events = [[_events(each) for each in functions.values()] for _ in range(runs)]
        wait()
        times = [[start.elapsed_time(end) for start, end in row] for row in events]
    return dict(zip(functions, map(statistics.median, zip(*times, strict=True)), strict=True))


def _events(function: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_MS * 2_000_000)  # cycles: the launches end before the first kernel starts
    start.record()
    function()
    end.record()
    return start, end


def peak_mib(function: Callable[[], object]) -> float | None:
    """MiB that a call holds at its peak beyond what it returns; None on a CPU."""
    if DEVICE == "cpu":
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = function()
    returned, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    del result
    return (peak - returned) / 2**20


VERBS = {each.__name__: each for each in (forward, operators)}

if __name__ == "__main__":
    run(main)
