"""Section `split`: where the time of pyramid + network goes, as shares of the total.

On a GPU, by the names of the kernels in torch's profiler: shares of the time that kernels take, of which
`gpu` is the sum; `idle` is the share of the wall-clock time, measured without the profiler, in which the
device waits for the host. The kernels that no stage claims are listed by name. On a CPU, by wrapping the
functions of each stage for as long as it is measured: what one calls of another stage counts there; the
backward pass of norms is `other`.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from time import perf_counter
from unittest.mock import patch

import torch
from clouds import fragments
from engines import engines
from networks import in_precision, tf32_if
from pairs import pairs
from timing import wall_ms
from training import step

# A kernel belongs to the first stage that lists its whole name (ours) or a part of it (torch's).
KERNELS = {
    "sampling": ("_cells", "_pick"),
    "search": ("visit",),
    "grouping": ("put_in_order", "segment", "size_tiles", "fill_tiles"),
    "kernels": ("_output_stationary", "_weight_stationary", "_reduce_parts", "_partial_sums", "_sum_runs"),
}
PARTS_OF_NAMES = {
    "sampling": ("RadixSort", "radixSort"),  # one sort serves to sample a level and to search it
    "grouping": ("DeviceScan", "device_scan", "_scan_"),
    "norms": ("batch_norm", "batchnorm", "bn_fw", "bn_bw"),
}
# On a CPU: module, object and attribute.
FUNCTIONS = {
    "sampling": ("pcreg.kernels.pyramid:grid_sample",),
    "search": (
        "pcreg.kernels.stencil:pairs_within",
        "pcreg.kernels.stencil:pairs_between",
        "pcreg.kernels.pyramid:voxel_triplets",
    ),
    "grouping": ("pcreg.kernels.pyramid:native_triplets", "pcreg.kernels.pyramid:arrange"),
    "kernels": ("pcreg.kernels.cpu.conv:mvmr", "pcreg.kernels.cpu.conv:vvor"),
    "norms": ("torch.nn:BatchNorm1d.forward",),
}
STAGES = ("sampling", "search", "grouping", "kernels", "norms", "other")
SHOWN = 8  # kernels without a stage
MOST_PROFILED = 5  # calls


def splits(options: argparse.Namespace) -> Iterator[dict]:
    device, voxel = options.device, options.voxel[0]
    workload = options.load(voxel)
    precision = "bfloat16" if device.type == "cuda" else "float32"
    whole = len(workload.cloud)
    for engine in engines(voxel, []):
        network = in_precision(engine.network().to(device).eval(), precision)
        for clouds, n in ((1, options.fragment), (options.batch, options.fragment), (1, whole)):
            (batch,) = fragments(workload, n, clouds, 1)

            @torch.inference_mode()
            def forward(engine=engine, network=network, batch=batch) -> object:
                return network(engine.index(batch, False))

            label = f"{clouds} x {min(n, whole):,}"
            yield row(f"pyramid + forward, {label}", engine.name, precision, forward, options)
        batch = pairs(workload, options.fragment, options.pairs, seed=0)
        train = step(engine, "contrastive", precision, device)
        label = f"training step, {options.pairs} pairs"
        yield row(label, engine.name, precision, lambda train=train, batch=batch: train(batch), options)


def row(what: str, name: str, precision: str, function: Callable, options: argparse.Namespace) -> dict:
    device = options.device
    for _ in range(2):
        function()
    with tf32_if(precision):
        wall = statistics.median(wall_ms(function, device) for _ in range(options.runs))
        spent = (by_kernel if device.type == "cuda" else by_function)(
            function, min(options.runs, MOST_PROFILED)
        )
    total = sum(spent.values())
    shares = {stage: spent[stage] / total for stage in STAGES}
    gpu = total if device.type == "cuda" else None
    facts = {"what": what, "engine": name, "precision": precision, "wall": wall, "gpu": gpu}
    return facts | shares | {"idle": None if gpu is None else max(0.0, 1 - gpu / wall)}


def by_kernel(function: Callable[[], object], runs: int) -> dict[str, float]:
    """Milliseconds of the device per stage and call, by the names of kernels and copies."""
    from torch.profiler import DeviceType, ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(runs):
            function()
        torch.cuda.synchronize()
    spent, unclaimed = defaultdict(float), defaultdict(float)
    for event in profiler.key_averages():
        is_annotation = getattr(event, "is_user_annotation", False) or event.key.startswith("Optimizer")
        if event.device_type != DeviceType.CUDA or is_annotation:
            continue
        milliseconds = event.self_device_time_total / 1000 / runs
        stage = stage_of(event.key)
        spent[stage] += milliseconds
        if stage == "other":
            unclaimed[event.key] += milliseconds
    for name in sorted(unclaimed, key=unclaimed.get, reverse=True)[:SHOWN]:
        print(f"    other: {unclaimed[name]:8.3f} ms  {name[:90]}")
    return spent


def stage_of(kernel: str) -> str:
    for stage, names in KERNELS.items():
        if kernel in names:
            return stage
    for stage, parts in PARTS_OF_NAMES.items():
        if any(part in kernel for part in parts):
            return stage
    return "other"


def by_function(function: Callable[[], object], runs: int) -> dict[str, float]:
    """Milliseconds per stage and call, of the functions in FUNCTIONS without those that they call."""
    spent: dict[str, float] = defaultdict(float)
    with ExitStack() as patches:
        enter = _clock(spent)
        for stage, names in FUNCTIONS.items():
            for name in names:
                patches.enter_context(_wrapped(name, lambda stage=stage: enter(stage)))
        for _ in range(runs):
            with enter("other"):
                function()
    return {stage: 1000 * spent[stage] / runs for stage in STAGES}


def _clock(spent: dict[str, float]) -> Callable:
    """A context manager for a stage: its time goes to the innermost one that is entered."""
    within: list[str] = []
    since = [0.0]

    def switch() -> None:
        now = perf_counter()
        if within:
            spent[within[-1]] += now - since[0]
        since[0] = now

    @contextmanager
    def enter(stage: str) -> Iterator[None]:
        switch()
        within.append(stage)
        try:
            yield
        finally:
            switch()
            within.pop()

    return enter


def _wrapped(name: str, enter: Callable):
    module, _, path = name.partition(":")
    owner = import_module(module)
    *outer, attribute = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    original = getattr(owner, attribute)

    def timed(*arguments, **keywords):
        with enter():
            return original(*arguments, **keywords)

    return patch.object(owner, attribute, timed)
