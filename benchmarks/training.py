"""Pairs a second of a training on simulated scenes, and losses to compare two commits by.

python benchmarks/training.py speed [--pairs 16] [--steps 400] [--workers 0 1 2]
torchrun --nproc-per-node=2 benchmarks/training.py speed
python benchmarks/training.py losses losses.json [--loss hardest_contrastive] [--steps 200]

speed   steps of `pcreg train`, TensorBoard included, on batches that lie on the GPU (0 workers) and on
        batches of other processes; `GPU busy` adds up the kernels of the training process. Needs a GPU.
losses  of the steps of a narrow network on one simulated room, as JSON. On a CPU the same code gives the
        same numbers; `python benchmarks/compare.py losses A B` compares two files.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig
from report import Value, keep, parser, run
from torch.profiler import ProfilerActivity, profile

from pcreg.cli.config import compose_config
from pcreg.cli.train import optimizer_of, preparation_of
from pcreg.models.resunet import ResUNet
from pcreg.runtime.device import choose_device
from pcreg.runtime.distributed import ALONE, Ranks, init_distributed
from pcreg.training.losses import Batch
from pcreg.training.trainer import Trainer

WARM_UP = 30  # steps that are not timed
PROFILED = 50  # further steps, whose kernels are added up
SCENES = 8  # recorded before the timing
FIGURES = {"feature_match_recall": 0.0, "inlier_ratio": 0.0}  # in place of a validation
SMALL = ["model=narrow", "model.voxel=0.1", "maximum_points=2000", "precision=float32"]


def main() -> None:
    made, verbs = parser(__doc__, "speed", "losses")
    speed, losses = verbs.values()
    speed.add_argument("--pairs", type=int, default=16, help="of a step")
    speed.add_argument("--steps", type=int, default=400, help="that are timed")
    speed.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    losses.add_argument("file", type=Path)
    losses.add_argument("--loss", default="hardest_contrastive", choices=("hardest_contrastive", "info_nce"))
    losses.add_argument("--steps", type=int, default=200)
    options = made.parse_args()
    if options.verb == "losses":
        write_losses(options)
        return
    settings = ["experiment=simulated", f"batches.batch_size={options.pairs}"]
    settings += [f"batches.pool={SCENES}", f"batches.per_epoch={WARM_UP + options.steps}"]
    cfg = compose_config("train", settings)
    with init_distributed(choose_device("cuda")) as ranks:
        rows = (speed_row(cfg, ranks, workers) for workers in options.workers)
        if ranks.first:
            name = f"training-{ranks.count}" if ranks.count > 1 else "training"
            keep(rows, options.out / f"{name}.json", "cuda")
        else:
            list(rows)


def speed_row(cfg: DictConfig, ranks: Ranks, workers: int) -> dict[str, Value]:
    batches, trainer = training(cfg, ranks)
    batches = batches(workers=workers)
    timed = Timed(batches if workers else Repeated(batches, ranks.device))
    with tempfile.TemporaryDirectory() as folder:
        made = trainer(folder)
        made.fit(timed, 1, lambda network: FIGURES)
        step = timed.seconds_per_step()
        timed.count = PROFILED
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            made.fit(timed, 2, lambda network: FIGURES)
    busy = sum(event.device_time for event in profiled.events() if event.device_type.name == "CUDA")
    pairs = ranks.count * cfg.batches.batch_size
    return {
        "GPUs": ranks.count,
        "batches": f"{workers} process{'es' * (workers > 1)}" if workers else "there",
        "pairs a step": pairs,
        "ms": 1e3 * step,
        "pairs a second": pairs / step,
        "GPU busy": f"{busy / 1e6 / PROFILED / step:.0%}",
    }


def training(cfg: DictConfig, ranks: Ranks, **settings: Any) -> tuple[partial, partial]:
    """Makers of the batches, given `workers`, and of the trainer, given its folder."""
    network = ResUNet(instantiate(cfg.model, _convert_="all"))
    given = {
        "preparation": preparation_of(cfg, network.architecture),
        "geometry": network.architecture,
    }
    batches = partial(instantiate(cfg.batches), **given, ranks=ranks)
    optimizer = optimizer_of(cfg, network.parameters(), ranks.device)
    settings = {"loss": instantiate(cfg.loss), "precision": cfg.precision, "ranks": ranks} | settings
    return batches, partial(Trainer, network, optimizer, **settings)


def write_losses(options: argparse.Namespace) -> None:
    """Train on the CPU, and write the loss of every step."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = ["experiment=simulated", f"loss={options.loss}", "~loss.negatives_per_pair", *SMALL]
    settings += ["batches.record.path=pcreg.datasets.simulated.indoor.record", "batches.pool=1"]
    settings += ["batches.batch_size=2", "batches.renew_every=100000", f"batches.per_epoch={options.steps}"]
    cfg = compose_config("train", settings)
    inner, losses = instantiate(cfg.loss), []

    def loss(*arguments: Any) -> dict[str, torch.Tensor]:
        found = inner(*arguments)
        losses.append(found["total"].item())
        return found

    batches, trainer = training(cfg, ALONE, loss=loss, ema=0.99)
    with tempfile.TemporaryDirectory() as folder:
        trainer(folder).fit(batches(workers=0), 1, lambda network: FIGURES)
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text(json.dumps(losses))
    print(f"{options.file}: {len(losses)} losses, from {losses[0]:.4f} to {losses[-1]:.4f}")


class Repeated:
    """Four batches of a training, on the device with their pyramids, again and again."""

    def __init__(self, batches: Any, device: str) -> None:
        self.length = len(batches)
        self.made = [batch.to(device) for number in range(4) if (batch := batches.make(number))]

    def __len__(self) -> int:
        return self.length

    def epoch(self, epoch: int, first: int = 0) -> Iterable[Batch | None]:
        return islice(cycle(self.made), self.length - first)


class Timed:
    """The first `count` batches of each epoch, and when each was asked for."""

    def __init__(self, batches: Any) -> None:
        self.batches, self.count, self.asked = batches, len(batches), []

    def __len__(self) -> int:
        return self.count

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch | None]:
        self.asked = []
        for batch in islice(self.batches.epoch(epoch, first), self.count - first):
            yield batch
            self.asked.append(perf_counter())

    def seconds_per_step(self) -> float:
        start, *_, end = self.asked[WARM_UP:]
        return (end - start) / (len(self.asked) - WARM_UP - 1)


if __name__ == "__main__":
    run(main)
