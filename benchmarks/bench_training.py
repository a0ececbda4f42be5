"""How many pairs a second a training takes on simulated scenes, and for how much of it the GPU works.

    python benchmarks/bench_training.py [--experiment indoor] [--pairs 16] [--steps 400] [--workers 0 1 2]
    torchrun --nproc-per-node=2 benchmarks/bench_training.py

    there      batches that lie on the device with their pyramids, the same four again and again
    1 process  batches as a training has them: another process makes them, and their pyramids; or two do

Steps are those of `pcreg train`, TensorBoard included; times are means. `GPU busy` adds up what the kernels
of the training process take, of several the first. Needs a GPU, or one for each process. Writes
docs/results/training.json, of two processes training-2.json, which benchmarks/pages.py puts into
docs/benchmarks/network.md.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from time import perf_counter

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig
from pages import RESULTS, save
from report import parser, run
from torch.profiler import ProfilerActivity, profile

from pcreg.cli.config import compose_config
from pcreg.datasets.preparation import Preparation
from pcreg.datasets.simulated.endless import Endless
from pcreg.models.resunet import ResUNet
from pcreg.runtime.device import choose_device
from pcreg.runtime.distributed import Ranks, init_distributed
from pcreg.training.losses import Batch
from pcreg.training.trainer import Trainer

WARM_UP = 30  # steps that are not timed
PROFILED = 50  # more, whose kernels are added up
SCENES = 8  # in the pool: what a scene takes to record is not measured


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--experiment", default="indoor", choices=("indoor", "outdoor"))
    made.add_argument("--pairs", type=int, default=16, help="of a step")
    made.add_argument("--steps", type=int, default=400, help="that are timed; a scene is new to every tenth")
    made.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2], help="0: batches that are there")
    options = made.parse_args()
    settings = [f"experiment={options.experiment}", f"batches.batch_size={options.pairs}"]
    settings += [f"batches.pool={SCENES}", f"batches.per_epoch={WARM_UP + options.steps}"]
    cfg = compose_config("train", settings)
    with init_distributed(choose_device("cuda")) as ranks:
        rows = list(_rows(cfg, ranks, options.workers))
        if not ranks.first:
            return
        several = ranks.count > 1
        start = f"torchrun --nproc-per-node={ranks.count}" if several else "python"
        save(
            RESULTS / (f"training-{ranks.count}.json" if several else "training.json"),
            rows,
            device=f"{torch.cuda.get_device_name()}, {len(os.sched_getaffinity(0))} cores",
            versions=f"torch {torch.__version__}",
            command=f"{start} benchmarks/bench_training.py --experiment {options.experiment}",
            code=["pcreg.training.trainer", "pcreg.datasets.simulated.endless"],
        )


def _rows(cfg: DictConfig, ranks: Ranks, numbers: Sequence[int]) -> Iterator[dict[str, str]]:
    network = ResUNet(instantiate(cfg.model, _convert_="all"))
    architecture = network.architecture
    preparation = Preparation(
        architecture.voxel,
        instantiate(cfg.augment, _convert_="all"),
        positive_radius=cfg.positive_radius * architecture.voxel,
        maximum_points=cfg.maximum_points,
        scales=tuple(cfg.scales),
    )
    make = partial(
        instantiate(cfg.batches), preparation=preparation, geometry=architecture.geometry, ranks=ranks
    )
    for workers in numbers:
        name = f"{workers} process{'es' * (workers > 1)}" if workers else "there"
        batches = make(workers=workers)
        timed = _Timed(batches if workers else _Repeated(batches, ranks.device))
        optimizer = instantiate(cfg.optimizer, _partial_=True)(network.parameters(), fused=True)
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                network, optimizer, folder, precision=cfg.precision, loss=instantiate(cfg.loss), ranks=ranks
            )
            trainer.fit(timed, 1, _unvalidated)
            step = timed.step()
            with profile(activities=[ProfilerActivity.CUDA]) as profiled:
                trainer.fit(_Some(timed, PROFILED), 2, _unvalidated)
        busy = sum(event.device_time for event in profiled.events() if event.device_type.name == "CUDA")
        busy /= 1e6 * PROFILED
        pairs = ranks.count * cfg.batches.batch_size
        row = {"GPUs": str(ranks.count), "batches": name, "pairs a step": str(pairs)}
        row |= {"ms": f"{1e3 * step:.1f}", "pairs a second": f"{pairs / step:.0f}"}
        row |= {"GPU busy": f"{busy / step:.0%}"}
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        yield row


def _unvalidated(network: ResUNet) -> dict[str, float]:
    return {"feature_match_recall": 0.0, "inlier_ratio": 0.0}


class _Repeated:
    """Four batches of a training, on the device with their pyramids."""

    def __init__(self, batches: Endless, device: str) -> None:
        self.length = len(batches)
        self.made = [batch.to(device) for number in range(4) if (batch := batches.make(number))]

    def __len__(self) -> int:
        return self.length

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch | None]:
        return islice(cycle(self.made), self.length - first)


class _Some:
    """The first of the batches of an epoch."""

    def __init__(self, batches: "_Timed", count: int) -> None:
        self.batches, self.count = batches, count

    def __len__(self) -> int:
        return self.count

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch | None]:
        return islice(self.batches.epoch(epoch, first), self.count - first)


class _Timed:
    """Batches, and when each was asked for."""

    def __init__(self, batches: "Endless | _Repeated") -> None:
        self.batches, self.asked = batches, []

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Batch | None]:
        self.asked = []
        for batch in self.batches.epoch(epoch, first):
            yield batch
            self.asked.append(perf_counter())

    def step(self) -> float:
        """Seconds from one to the next, on average."""
        start, *_, end = self.asked[WARM_UP:]
        return (end - start) / (len(self.asked) - WARM_UP - 1)


if __name__ == "__main__":
    run(main)
