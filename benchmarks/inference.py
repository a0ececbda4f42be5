"""Section `forward`: the network in inference mode, with and without building its pyramid.

Wall-clock time from call to finished descriptors, because small clouds are bound by the host; `gpu` is
the time of the device alone, launches queued beforehand. `both` is index + network in one call, `first`
the longest that a batch of a new size took: what has to be compiled, or allocated, for it, and what half
precision arranges in its first forward pass. `peak MiB` is that of `both`, without weights and points.
"""

import argparse
from collections.abc import Iterator

import torch
from engines import Engine, engines
from index_building import batches
from networks import in_precision, tf32_if
from timing import medians, peak_memory, walls

SLEEP = 20  # ms, longer than it takes to launch a forward pass


def forwards(options: argparse.Namespace) -> Iterator[dict]:
    for label, voxel, inputs in batches(options):
        for precision in options.precision:
            compared = [
                engine for engine in engines(voxel, options.spconv_kernels) if precision in engine.precisions
            ]
            with tf32_if(precision), torch.inference_mode():
                yield from rows(label, precision, compared, inputs, options)


def rows(label, precision, compared: list[Engine], inputs, options: argparse.Namespace) -> Iterator[dict]:
    device = options.device
    networks = {e.name: in_precision(e.network().to(device).eval(), precision) for e in compared}
    indices = {e.name: [e.index(clouds, False) for clouds in inputs] for e in compared}
    functions = {}
    for e in compared:
        functions |= {
            f"{e.name} index": lambda n, e=e: e.index(inputs[n], False),
            f"{e.name} forward": lambda n, e=e: networks[e.name](indices[e.name][n]),
            f"{e.name} both": lambda n, e=e: networks[e.name](e.index(inputs[n], False)),
        }
    times = walls(functions, len(inputs), options.runs, device)
    gpu = [None] * len(compared)
    if device.type == "cuda":
        forward = [lambda e=e: networks[e.name](indices[e.name][0]) for e in compared]
        gpu = medians(forward, max(1, options.runs // 2), device, SLEEP)
    indices.clear()
    for e, gpu_ms in zip(compared, gpu, strict=True):
        both = functions[f"{e.name} both"]
        yield {
            "clouds": label,
            "precision": precision,
            "engine": e.name,
            "points": len(inputs[0]),
            "index": times[f"{e.name} index"].median,
            "forward": times[f"{e.name} forward"].median,
            "worst": times[f"{e.name} forward"].worst,
            "first": times[f"{e.name} forward"].first,
            "gpu": gpu_ms,
            "both": times[f"{e.name} both"].median,
            "both worst": times[f"{e.name} both"].worst,
            "both first": times[f"{e.name} both"].first,
            "peak MiB": peak_memory(lambda both=both: both(0), device),
        }
