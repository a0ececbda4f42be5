"""Several processes that train one network, each on its GPU: as torchrun starts them."""

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from pcreg.runtime.errors import InputError
from pcreg.runtime.parent import end_with

Batch = TypeVar("Batch")
TIMEOUT = timedelta(hours=6)  # for which others wait while the first process validates or computes truth


@dataclass(frozen=True)
class Ranks:
    """Number `rank` of `count` processes. The first one writes files and speaks for all."""

    rank: int = 0
    count: int = 1
    device: str = "cpu"

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share_state(self, network: nn.Module) -> None:
        """Give all processes the weights and statistics that the network has in the first."""
        if self.count > 1:
            for tensor in network.state_dict().values():
                distributed.broadcast(tensor, 0)

    def average(self, gradient: Tensor) -> None:
        """Make an array its mean over all processes.

        After the backward pass: that may be a CUDA graph, which no hook of DistributedDataParallel enters.
        Where another process has not come as far, this one waits before its GPU does: until the other has its
        batch, the process that makes batches has this GPU to itself.
        """
        if self.count > 1:
            self._ask_all(True)()
            distributed.all_reduce(gradient)
            gradient /= self.count

    def had_by_all(self, batches: Iterator[Batch | None]) -> Iterator[Batch | None]:
        """The batches, but None where a process has none: a step is made by all or by none.

        Others are asked when a batch comes, and have until the next one comes to answer: no process waits
        for them each step.
        """
        if self.count == 1:
            yield from batches
            return
        before: tuple[Batch | None, Callable[[], bool]] | None = None
        for batch in batches:
            asked, before = before, (batch, self._ask_all(batch is not None))
            if asked is not None:
                yield asked[0] if asked[1]() else None
        if before is not None:
            yield before[0] if before[1]() else None

    def _ask_all(self, flag: bool) -> Callable[[], bool]:
        """What waits until all processes have asked, and tells whether all of their flags are true."""
        least = torch.tensor(int(flag))  # on the CPU: GPUs have other things to do
        work = distributed.all_reduce(least, distributed.ReduceOp.MIN, async_op=True)
        return lambda: work.wait() and bool(least)

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Let the first process do what is within before the others, who find in files what it computed."""
        if self.count > 1 and not self.first:
            self._ask_all(True)()
        yield
        if self.count > 1 and self.first:
            self._ask_all(True)()


ALONE = Ranks()


@contextmanager
def init_distributed(device: str) -> Iterator[Ranks]:
    """The processes of this training: those that torchrun started, or this one alone.

    Each takes the GPU of its own number, unless `device` is cpu, and ends when torchrun does. After an
    exception the process ends without waiting for the others, which torchrun then ends. Raises InputError if
    there are more processes than GPUs.
    """
    if not distributed.is_torchelastic_launched():
        yield Ranks(device=device)
        return
    local = int(os.environ["LOCAL_RANK"])
    if device != "cpu":
        if local >= torch.cuda.device_count():
            raise InputError(
                f"torchrun starts more processes than this machine has GPUs ({torch.cuda.device_count()}); "
                "give --nproc-per-node that number"
            )
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    end_with(os.getppid())
    backends = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    distributed.init_process_group(backends, timeout=TIMEOUT)
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size(), device)
    except BaseException:
        # On GPUs leaving the group waits for the others, and they wait for this process.
        atexit.register(_end)
        raise
    distributed.destroy_process_group()


def _end() -> None:
    """End this process and its workers at once, after what went wrong was said."""
    for worker in multiprocessing.active_children():
        worker.terminate()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
