"""Peak memory and time against the number of points, up to the largest that fits.

    python benchmarks/bench_scale.py [CLOUD] [--voxel 0.025] [--json FILE] [--plot docs/memory.png]

One operator (64 -> 64) and the default ResUNet; forward (weights in bfloat16, inference mode) and training
(forward + backward under bfloat16 autocast), the ResUNet also with activation checkpoints; float32 on a CPU.
The points are a cloud cut short or repeated, as a batch. `peak MiB` is all that is allocated, points, weights
and gradients included, at the worse of building the pyramid (`index MiB`) and running the network;
`bytes/point` is that per point. Points grow by a factor of sqrt(10) until memory is full.
"""

import argparse
import gc
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from report import Report, parser, run
from timing import wall_ms
from torch import Tensor, nn
from workload import load

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv, convolve_in
from pcreg.models.resunet import Architecture, ResUNet
from pcreg.runtime.device import choose_device
from pcreg.runtime.files import replacing

WIDTH = 64  # channels of the operator
STEP = 10**0.5
RUNS = 3
LIMITS = {"cuda": (1e5, 1e9), "cpu": (1e4, 1e4)}  # points, from and to
COLORS = {"operator": "#5b8c5a", "ResUNet": "#2b5f9e"}
STYLES = {"forward": ":", "training": "-", "checkpointed": "--"}  # by mode
CASES = [
    (model, mode) for model in COLORS for mode in STYLES if (model, mode) != ("operator", "checkpointed")
]


class Operator(nn.Module):
    """One convolution with 27 cells, and features to convolve."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = PointConv(WIDTH, WIDTH)

    def forward(self, triplets: Triplets) -> Tensor:
        weight, kind = self.conv.weight, self.conv.weight.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        features = torch.ones(triplets.n_in, WIDTH, dtype=dtype, device=weight.device)
        return self.conv(features.requires_grad_(torch.is_grad_enabled()), triplets)


def main() -> None:
    options = parse()
    device = torch.device(choose_device("auto"))
    torch.set_num_threads(options.threads)
    report = Report(device, options.json)
    cloud = load(options.cloud, options.voxel, device).cloud
    low, high = LIMITS[device.type]
    bounds = options.min_points or low, options.max_points or high
    try:
        report.section("scale", rows(cloud, options.voxel, *bounds))
    finally:  # a device that gives up at its largest cloud leaves the smaller ones to draw
        if options.plot and report.content.get("scale"):
            plot(report.content["scale"], options.plot)


def rows(cloud: PointBatch, voxel: float, min_points: float, max_points: float) -> Iterator[dict]:
    for model, mode in CASES:
        n = min_points
        while n <= max_points * 1.01:
            try:
                yield row(cut_or_repeat(cloud, round(n)), voxel, model, mode)
            except (RuntimeError, ValueError, OverflowError) as error:  # indices have limits, as memory has
                if cloud.points.device.type == "cpu":
                    raise
                print(f"    {model} {mode}: {n:,.0f} points: {str(error).splitlines()[0]}", flush=True)
                break
            finally:
                gc.collect()
                torch.cuda.empty_cache()
            n *= STEP


def row(batch: PointBatch, voxel: float, model: str, mode: str) -> dict:
    device, n = batch.points.device, len(batch)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    architecture = Architecture(voxel)
    network = Operator() if model == "operator" else ResUNet(architecture, mode == "checkpointed")
    search = search_once if model == "operator" else Pyramid.build
    step = forward(network.to(device), dtype) if mode == "forward" else training(network.to(device), dtype)
    search(batch, architecture.geometry)  # warm up
    pyramid, index_ms, index_peak = measured(lambda: search(batch, architecture.geometry), 1, device)
    step(pyramid)
    _, ms, peak = measured(lambda: step(pyramid), RUNS, device)
    highest = None if peak is None else max(index_peak, peak)
    return {
        "model": model,
        "mode": mode,
        "points": n,
        "index": index_ms,
        "ms": ms,
        "index MiB": None if peak is None else index_peak / 2**20,
        "peak MiB": None if peak is None else highest / 2**20,
        "bytes/point": None if peak is None else highest / n,
    }


def search_once(batch: PointBatch, geometry: PyramidConfig) -> Triplets:
    return native_triplets(batch.points, batch.points, batch.lengths, batch.lengths, geometry.voxel)


def cut_or_repeat(cloud: PointBatch, n: int) -> PointBatch:
    """n points: the first of the cloud, or several copies of it, each a cloud of its own."""
    copies, rest = divmod(n, len(cloud))
    lengths = [len(cloud)] * copies + [rest] * (rest > 0)
    points = torch.cat([cloud.points[:length] for length in lengths])
    return PointBatch(points, torch.tensor(lengths, device=points.device))


def measured(function: Callable[[], object], runs: int, device) -> tuple[object, float, int | None]:
    """The last result, the median of the wall-clock milliseconds, and the bytes allocated at the peak."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    results = []

    def keep_last() -> None:
        results.clear()
        results.append(function())

    ms = statistics.median(wall_ms(keep_last, device) for _ in range(runs))
    return results[0], ms, torch.cuda.max_memory_allocated() if device.type == "cuda" else None


def forward(network: nn.Module, dtype: torch.dtype) -> Callable[[object], object]:
    network = convolve_in(network.eval(), dtype)
    return torch.inference_mode()(lambda pyramid: network(pyramid))


def training(network: nn.Module, dtype: torch.dtype) -> Callable[[object], None]:
    network.train()

    def step(pyramid) -> None:
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            out = network(pyramid)
        network.zero_grad()
        out.backward(out.detach())

    return step


def plot(rows: list[dict], path: Path) -> None:
    """Peak memory and time against the number of points, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    memory, time = figure.subplots(1, 2)
    for model, mode in dict.fromkeys((row["model"], row["mode"]) for row in rows):
        line = [row for row in rows if (row["model"], row["mode"]) == (model, mode)]
        look = {"color": COLORS[model], "linestyle": STYLES[mode], "marker": "o", "label": f"{model}, {mode}"}
        points = [row["points"] for row in line]
        if line[0]["peak MiB"] is not None:
            memory.plot(points, [row["peak MiB"] / 1024 for row in line], **look)
        time.plot(points, [(row["index"] + row["ms"]) / 1000 for row in line], **look)
    memory.set(ylabel="peak memory (GiB)")
    time.set(ylabel="time, pyramid included (s)")
    for axes in (memory, time):
        axes.set(xscale="log", yscale="log", xlabel="points")
        axes.grid(True, color="0.9")
    time.legend(frameon=False, fontsize=9)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)


def parse() -> argparse.Namespace:
    made = parser(__doc__, cloud=True)
    made.add_argument("--voxel", type=float, default=0.025, help="metres (default: %(default)s)")
    made.add_argument("--min-points", type=float, help="to begin with")
    made.add_argument("--max-points", type=float, help="to end with")
    made.add_argument("--plot", type=Path, metavar="FILE")
    return made.parse_args()


if __name__ == "__main__":
    run(main)
