"""Torch's loader, whose processes end with this one and whose errors are single sentences."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import torch
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from pcreg.runtime import parallel
from pcreg.runtime.device import ONE_THREAD
from pcreg.runtime.errors import InputError
from pcreg.runtime.termination import end_with_parent

END = object()


def load(dataset: Dataset | IterableDataset, *, workers: int, **settings: Any) -> Iterator[Any]:
    """The batches of a DataLoader with these `settings`, made by `workers` processes or, with 0, by this one.

    Each process computes with one thread, so that sums are equal to the last bit. The death of a process is
    raised within five seconds in the caller that waits for its batch.
    """
    loader = DataLoader(dataset, num_workers=workers, worker_init_fn=_begin, **settings)
    if workers == 0:
        return _by_one_thread(loader)
    if current_thread() is not main_thread() or not hasattr(signal, "SIGCHLD"):
        return iter(loader)
    handler = signal.getsignal(signal.SIGCHLD)
    batches = iter(loader)
    signal.signal(
        signal.SIGCHLD, handler
    )  # torch's raises the death of a process while a checkpoint is written
    return batches


def _by_one_thread(loader: Iterable[Any]) -> Iterator[Any]:
    batches = iter(loader)
    while True:
        with ONE_THREAD:
            batch = next(batches, END)
        if batch is END:
            return
        yield batch


def _begin(_number: int) -> None:
    """Give a loader process one core, and end it silently with the training."""
    parallel.give(parallel.allowed()[:1])
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends torch's loop


@contextmanager
def unwrap_loader_errors() -> Iterator[None]:
    """Raise the refusal or the death of a loader process as an InputError of one sentence."""
    try:
        yield
    except InputError as error:
        # Torch prepends the traceback of the process, which ends with the sentence.
        prefix, refused, sentence = str(error).rstrip().rpartition(f"{InputError.__name__}: ")
        if refused and prefix.startswith("Caught"):
            raise InputError(sentence) from error
        raise
    except RuntimeError as error:
        if "DataLoader worker (pid" not in str(error):
            raise
        raise InputError(
            f"a process that makes batches ended ({str(error).strip('. ')}), probably for want of memory; "
            "run again with workers=0 (what is done up to the last checkpoint is kept)"
        ) from error


def can_share(device: str) -> bool:
    """True if processes can share tensors on the device; not every system shares a GPU's memory."""
    try:
        reduce_tensor(torch.empty(1, device=device))
    except RuntimeError:
        return False
    return True
