"""Section `training`: one step on a batch of pairs, everything built anew.

Pyramids of all sources and of all targets, a forward pass of each, the loss, backward and a step of
SGD, as pcreg/training/trainer.py does them, without its checks and logs. Half precision is autocast. The
plain loss, a sum of squares, is for the comparison with spconv, whose autocast knows float16 alone.
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from engines import Engine, engines
from networks import autocast, tf32_if
from pairs import Pairs, pairs
from timing import peak_memory, walls
from torch import Tensor

from pcreg.training.losses import hardest_contrastive_loss

LOSSES = {"contrastive": ("float32", "tf32", "bfloat16"), "plain": ("float32", "float16")}


def steps(options: argparse.Namespace) -> Iterator[dict]:
    voxel, device = options.voxel[0], options.device
    workload = options.load(voxel)
    sizes = [round(options.fragment * (1 - 0.05 * n)) for n in range(min(4, options.sizes))]
    batches = [pairs(workload, size, options.pairs, seed=n) for n, size in enumerate(sizes)]
    for loss, precisions in LOSSES.items():
        for precision in precisions:
            if device.type == "cpu" and precision != "float32":
                continue
            others = options.spconv_kernels if loss == "plain" else []
            compared = [e for e in engines(voxel, others) if precision in e.precisions]
            with tf32_if(precision):
                yield from rows(loss, precision, compared, batches, options)


def rows(loss, precision, compared: list[Engine], batches: list[Pairs], options) -> Iterator[dict]:
    device = options.device
    run = {e.name: step(e, loss, precision, device) for e in compared}
    functions = {}
    for e in compared:
        functions[f"{e.name} index"] = lambda n, e=e: index(e, batches[n])
        functions[e.name] = lambda n, e=e: run[e.name](batches[n])
    times = walls(functions, len(batches), options.runs, device)
    for e in compared:
        yield {
            "loss": loss,
            "precision": precision,
            "engine": e.name,
            "pairs": options.pairs,
            "points": len(batches[0]),
            "index": times[f"{e.name} index"].median,
            "step": times[e.name].median,
            "worst": times[e.name].worst,
            "first": times[e.name].first,
            "peak MiB": peak_memory(lambda e=e: run[e.name](batches[0]), device),
        }


def step(engine: Engine, loss: str, precision: str, device: torch.device) -> Callable[[Pairs], None]:
    """A training step of a network of its own."""
    network = engine.network().to(device).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.8, weight_decay=1e-4)
    generator = torch.Generator().manual_seed(0)

    def run(batch: Pairs) -> None:
        pyramids = index(engine, batch)
        with autocast(precision, device):
            features = [network(pyramid) for pyramid in pyramids]
            total = contrastive(features, batch, generator) if loss == "contrastive" else plain(features)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    return run


def index(engine: Engine, batch: Pairs) -> list:
    return [engine.index(clouds, True) for clouds in (batch.source, batch.target)]


def contrastive(features: list[Tensor], batch: Pairs, generator: torch.Generator) -> Tensor:
    sizes = 1024 * batch.n_pairs, 256 * batch.n_pairs
    return hardest_contrastive_loss(*features, batch.matches, generator, *sizes).total


def plain(features: list[Tensor]) -> Tensor:
    """The sum of squares of every other channel: that of all is one, in each row."""
    return sum(each[:, ::2].float().square().sum() for each in features)
