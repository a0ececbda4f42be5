"""Whether spconv works here, found out by one step on the whole cloud.

spconv picks its kernels once per shape of weights, for the first voxels that it meets: these, so that
the picks suit a large cloud. One that fails is left out, and its error printed, rather than end the
benchmark.
"""

import argparse
from importlib.util import find_spec

import torch
from clouds import fragments
from engines import Engine, spconv
from networks import autocast, in_precision

SECTIONS = {"index", "pyramid", "forward", "training"}  # in which it takes part


def working_kernels(options: argparse.Namespace) -> list[tuple[int, int]]:
    """Cells per axis of its strided convolutions (options.spconv_down) and its stem: 5, if that works."""
    device, voxel = options.device, options.voxel[0]
    if device.type == "cpu" or not find_spec("spconv") or not SECTIONS & set(options.only):
        return []
    workload, working = options.load(voxel), []
    (clouds,) = fragments(workload, len(workload.cloud), 1, 1)
    for kernel in options.spconv_down:
        for stem in (5, 3):
            try:
                _try(spconv(voxel, kernel, stem), clouds, device)
            except Exception as error:  # of a binary made for other versions
                print(f"spconv fails, strided {kernel}^3, stem {stem}^3: {type(error).__name__}: {error}")
            else:
                working.append((kernel, stem))
                break
    return working


def _try(engine: Engine, clouds, device: torch.device) -> None:
    for precision in engine.precisions:
        network = engine.network().to(device).train()
        with autocast(precision, device):
            out = network(engine.index(clouds, True))
        out[:, ::2].float().square().sum().backward()
        network = in_precision(network.eval(), precision)
        with torch.inference_mode():
            network(engine.index(clouds, False))
    torch.cuda.synchronize()
