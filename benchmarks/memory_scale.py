"""Section `scale`: peak memory and time against the number of points, up to the largest that fits.

One operator (64 -> 64), the default ResUNet, and a plain residual network, its encoder alone with a first
layer of 27 cells instead of 125; forward (weights in bfloat16, inference mode) and training (forward +
backward under bfloat16 autocast), the latter also with activation checkpoints; float32 on a CPU. The points
are a cloud cut short or repeated, as a batch. `peak MiB` is all that is allocated, points, weights and
gradients included, at the worse of building the pyramid (`index MiB`) and running the network;
`bytes/point` is that per point. Points grow by a factor of sqrt(10) until memory is full; one more size
between the last two is then tried.
"""

import argparse
import gc
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from clouds import cut_or_repeat
from networks import Encoder, autocast, in_precision
from timing import wall_ms
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import PointConv
from pcreg.models.resunet import Architecture, ResUNet

WIDTH = 64  # channels of the operator
MODES = ("forward", "training", "checkpointed")
STEP = 10**0.5


class Operator(nn.Module):
    """One convolution with 27 cells, and features to convolve."""

    def __init__(self, architecture: Architecture, checkpointing: bool = False):
        super().__init__()
        self.architecture, self.checkpointing = architecture, checkpointing
        self.conv = PointConv(WIDTH, WIDTH)

    def index(self, batch: PointBatch) -> Triplets:
        points, lengths = batch.points, batch.lengths
        return native_triplets(points, points, lengths, lengths, self.architecture.voxel)

    def forward(self, triplets: Triplets) -> Tensor:
        weight, kind = self.conv.weight, self.conv.weight.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        features = torch.ones(triplets.n_in, WIDTH, dtype=dtype, device=weight.device)
        if torch.is_grad_enabled():
            features.requires_grad_()
        if self.checkpointing:
            return checkpoint(self.conv, features, triplets, use_reentrant=False)
        return self.conv(features, triplets)


STEM_KERNEL_SIZES = {"ResNet": 3}  # else the network's own
MODELS: dict[str, Callable[..., nn.Module]] = {"operator": Operator, "ResUNet": ResUNet, "ResNet": Encoder}


@dataclass(frozen=True)
class Case:
    model: str
    mode: str
    cloud: PointBatch  # to cut or repeat
    voxel: float
    runs: int

    def measure(self, n: int) -> dict | None:
        """A row for n points; None if they do not fit, which is told."""
        try:
            return self._measure(n)
        except torch.cuda.OutOfMemoryError:
            print(f"    {self.model} {self.mode}: {n:,} points do not fit", flush=True)
        except (RuntimeError, ValueError, OverflowError) as error:  # indices have limits, too
            if self.cloud.points.device.type == "cpu":
                raise
            print(f"    {self.model} {self.mode}: {n:,} points: {str(error).splitlines()[0]}", flush=True)
        return None

    def _measure(self, n: int) -> dict:
        device = self.cloud.points.device
        batch = cut_or_repeat(self.cloud, n)
        kernel_size = STEM_KERNEL_SIZES.get(self.model, Architecture.stem_kernel_size)
        architecture = Architecture(self.voxel, stem_kernel_size=kernel_size)
        network = MODELS[self.model](architecture, self.mode == "checkpointed").to(device)
        precision = "bfloat16" if device.type == "cuda" else "float32"
        run = forward(network, precision) if self.mode == "forward" else training(network, precision, device)
        build = network.index if isinstance(network, Operator) else _pyramid(network)
        build(batch)  # warm up
        pyramid, index_ms, index_peak = measured(lambda: build(batch), 1, device)
        run(pyramid)
        _, ms, peak = measured(lambda: run(pyramid), self.runs, device)
        highest = None if peak is None else max(index_peak, peak)
        return {
            "model": self.model,
            "mode": self.mode,
            "points": n,
            "index": index_ms,
            "ms": ms,
            "index MiB": None if peak is None else index_peak / 2**20,
            "peak MiB": None if peak is None else highest / 2**20,
            "bytes/point": None if peak is None else highest / n,
        }


def scales(options: argparse.Namespace) -> Iterator[dict]:
    workload = options.load(options.voxel[0])
    for model in options.models:
        for mode in MODES:
            case = Case(model, mode, workload.cloud, workload.size, min(options.runs, 3))
            yield from grow(case, options.least, options.most)


def grow(case: Case, least: float, most: float) -> Iterator[dict]:
    n, fitted = least, None
    while n <= most * 1.01:
        row = case.measure(round(n))
        _release()
        if row is None:
            between = fitted and case.measure(round(n / STEP**0.5))
            _release()
            if between:
                yield between
            return
        yield row
        n, fitted = n * STEP, n


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


def forward(network: nn.Module, precision: str) -> Callable[[object], None]:
    network = in_precision(network.eval(), precision)

    @torch.inference_mode()
    def run(pyramid) -> None:
        network(pyramid)

    return run


def training(network: nn.Module, precision: str, device: torch.device) -> Callable[[object], None]:
    network.train()

    def run(pyramid) -> None:
        with autocast(precision, device):
            out = network(pyramid)
        network.zero_grad()
        out.backward(out.detach())

    return run


def _pyramid(network: nn.Module) -> Callable[[PointBatch], Pyramid]:
    return lambda batch: Pyramid.build(batch, network.architecture.geometry)


def _release() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
