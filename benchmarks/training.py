"""Time a training on simulated scenes, in pairs a second. Needs a GPU.

    python benchmarks/training.py [--pairs 16] [--steps 400] [--workers 0 1 2]
    torchrun --nproc-per-node=2 benchmarks/training.py

Steps of `pcreg train`, TensorBoard included, on batches that are on the GPU already (0 workers) and on
batches of other processes. `GPU busy` adds up the kernels of the training process.
"""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from time import perf_counter
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig
from report import Value, keep, make_parser, run
from torch.profiler import ProfilerActivity, profile

from pcreg.cli.config import compose_config
from pcreg.cli.train import optimizer_of, preparation_of
from pcreg.datasets.collate import TrainingBatch
from pcreg.models.resunet import ResUNet
from pcreg.runtime.device import choose_device
from pcreg.runtime.distributed import Ranks, init_distributed
from pcreg.training.trainer import Trainer

WARM_UP = 30  # steps that are not timed
PROFILED = 50  # further steps, whose kernels are added up
SCENES = 8  # recorded before the timing
FIGURES = {"feature_match_recall": 0.0, "inlier_ratio": 0.0}  # in place of a validation


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=16, help="of a step")
    parser.add_argument("--steps", type=int, default=400, help="that are timed")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    settings = ["experiment=simulated", f"batches.batch_size={options.pairs}"]
    settings += [f"batches.pool={SCENES}", f"batches.per_epoch={WARM_UP + options.steps}"]
    cfg = compose_config("train", settings)
    with init_distributed(choose_device("cuda")) as ranks:
        rows = (speed_row(cfg, ranks, workers) for workers in options.workers)
        if ranks.first:
            keep(rows, options, "training", "cuda")
        else:
            list(rows)


def speed_row(cfg: DictConfig, ranks: Ranks, workers: int) -> dict[str, Value]:
    network = ResUNet(instantiate(cfg.model, _convert_="all"))
    prepared = preparation_of(cfg, network.architecture)
    given = {"preparation": prepared, "geometry": network.architecture, "ranks": ranks, "workers": workers}
    batches = instantiate(cfg.batches)(**given)
    timed = Timed(batches if workers else Repeated(batches, ranks.device))
    optimizer = optimizer_of(cfg, network.parameters(), ranks.device)
    settings = {"loss": instantiate(cfg.loss), "precision": cfg.precision, "ranks": ranks}
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(network, optimizer, folder, **settings)
        trainer.fit(timed, 1, lambda network: FIGURES)
        step = timed.seconds_per_step()
        timed.count = PROFILED
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            trainer.fit(timed, 2, lambda network: FIGURES)
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


class Repeated:
    """Four batches of a training, on the device with their pyramids, again and again."""

    def __init__(self, batches: Any, device: str) -> None:
        self.length = len(batches)
        self.made = [batch.to(device) for number in range(4) if (batch := batches.make(number))]

    def __len__(self) -> int:
        return self.length

    def epoch(self, epoch: int, first: int = 0) -> Iterable[TrainingBatch | None]:
        return islice(cycle(self.made), self.length - first)


class Timed:
    """The first `count` batches of each epoch, and the times at which the steps on them ended."""

    def __init__(self, batches: Any) -> None:
        self.batches, self.count, self.asked = batches, len(batches), []

    def __len__(self) -> int:
        return self.count

    def epoch(self, epoch: int, first: int = 0) -> Iterator[TrainingBatch | None]:
        self.asked = []
        for batch in islice(self.batches.epoch(epoch, first), self.count - first):
            yield batch
            self.asked.append(perf_counter())

    def seconds_per_step(self) -> float:
        start, *_, end = self.asked[WARM_UP:]
        return (end - start) / (len(self.asked) - WARM_UP - 1)


if __name__ == "__main__":
    run(main)
