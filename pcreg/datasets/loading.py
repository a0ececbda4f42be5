"""Torch's loader: its processes end with this one, and their errors are raised here as one sentence."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from torch.utils.data import DataLoader, Dataset, IterableDataset

from pcreg.datasets.packing import Packed, Packing
from pcreg.runtime import parallel
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.errors import InputError
from pcreg.runtime.termination import end_with_parent

END = object()


def load(dataset: Dataset | IterableDataset, *, workers: int, **settings: Any) -> Iterator[Any]:
    """What a DataLoader with these `settings` yields; `workers` processes make it, 0: this one.

    What is made here is made by one thread, as it is there: sums then are equal to the last bit. What is made
    there comes with all its tensors in one (pcreg.datasets.packing). That a process died is raised, within
    five seconds, to whoever waits for its batch.
    """
    loader = DataLoader(dataset, num_workers=workers, worker_init_fn=_begin, **settings)
    if workers == 0:
        return _by_one_thread(loader)
    loader.collate_fn = Packing(loader.collate_fn)
    with _sigchld_handler_kept():
        batches = iter(loader)
    return map(Packed.unpacked, batches)


@contextmanager
def _sigchld_handler_kept() -> Iterator[None]:
    """Without the handler of torch, which raises that a process died wherever this one is by then.

    That may be in the middle of writing a checkpoint, or of ending because of the same signal.
    """
    if current_thread() is not main_thread() or not hasattr(signal, "SIGCHLD"):
        yield
        return
    handler = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, handler)


def _by_one_thread(loader: Iterable[Any]) -> Iterator[Any]:
    batches = iter(loader)
    while True:
        with ONE_THREAD:
            batch = next(batches, END)
        if batch is END:
            return
        yield batch


def _begin(_number: int) -> None:
    """In a loader process: one core, an end with the training, which alone says that both were stopped."""
    parallel.give(parallel.allowed()[:1])
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which torch's loop takes for its end


@contextmanager
def unwrap_loader_errors() -> Iterator[None]:
    """Raise what a loader process refuses, or that it died, as an InputError of one sentence."""
    try:
        yield
    except InputError as error:
        # From a loader it comes with the whole traceback there, which ends with the sentence.
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
