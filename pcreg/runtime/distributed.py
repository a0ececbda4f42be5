"""Training of one network by several processes of torchrun, each on its own GPU."""

import atexit
import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from pcreg.runtime.errors import InputError
from pcreg.runtime.termination import end_with_parent

Batch = TypeVar("Batch")
TIMEOUT = timedelta(hours=6)  # others wait so long while the first process validates or computes ground truth


@dataclass(frozen=True)
class Ranks:
    """One of `count` processes; the first one writes files and prints."""

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
        """Average a gradient over all processes, in place; call this after the backward pass."""
        if self.count > 1:
            distributed.all_reduce(gradient)
            gradient /= self.count

    def had_by_all(self, batches: Iterator[Batch | None]) -> Iterator[Batch | None]:
        """Yield each batch, or None if any process has None, so that all processes skip the step."""
        for batch in batches:
            yield batch if self.count == 1 or self._are_all(batch is not None) else None

    def _are_all(self, flag: bool) -> bool:
        """Wait for all processes; True if the flag is true in each."""
        least = torch.tensor(int(flag))  # on the CPU, so that no queue of a GPU is waited for
        distributed.all_reduce(least, distributed.ReduceOp.MIN)
        return bool(least)

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Let the first process run the block before the others, which find its results in files."""
        if self.count > 1 and not self.first:
            self._are_all(True)
        yield
        if self.count > 1 and self.first:
            self._are_all(True)


ALONE = Ranks()


@contextmanager
def init_distributed(device: str) -> Iterator[Ranks]:
    """Join the processes that torchrun started; without torchrun yield this process alone.

    Each process uses the GPU of its local rank, unless `device` is cpu, and ends with torchrun. After an
    exception it does not wait for the others. Raises InputError if there are more processes than GPUs.
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
    end_with_parent()
    backends = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    distributed.init_process_group(backends, timeout=TIMEOUT)
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size(), device)
    except BaseException:
        # On GPUs destroying the group would wait for the other processes, which wait for this one
        atexit.register(_end)
        raise
    distributed.destroy_process_group()


def _end() -> None:
    """End this process and its workers at once, after the error was printed."""
    for worker in multiprocessing.active_children():
        worker.terminate()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
