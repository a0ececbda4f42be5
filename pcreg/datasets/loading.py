"""Torch's loader: its batches come in one tensor, its processes end with this one, its errors are sentences.

A pyramid has a hundred tensors. To hand over one after another takes both processes longer than a GPU takes
to build them, and a view drags its whole base along.
"""

import io
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from threading import current_thread, main_thread
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from pcreg.runtime import parallel
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.errors import InputError
from pcreg.runtime.termination import end_with_parent

END = object()
ALIGNMENT = 16  # bytes, which kernels load at once


def load(dataset: Dataset | IterableDataset, *, workers: int, **settings: Any) -> Iterator[Any]:
    """The batches of a DataLoader with these `settings`, made by `workers` processes or, with 0, by this one.

    Each process computes with one thread, so that sums are equal to the last bit. The death of a process is
    raised within five seconds in the caller that waits for its batch.
    """
    loader = DataLoader(dataset, num_workers=workers, worker_init_fn=_begin, **settings)
    if workers == 0:
        return _by_one_thread(loader)
    loader.collate_fn = _Packing(loader.collate_fn)
    with _sigchld_handler_kept():
        batches = iter(loader)
    return map(Packed.unpacked, batches)


@contextmanager
def _sigchld_handler_kept() -> Iterator[None]:
    """Undo torch's handler, which raises the death of a process even while a checkpoint is written."""
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


class Place(NamedTuple):
    """The place of a tensor in the one that holds it."""

    start: int  # bytes
    dtype: torch.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Packed:
    """An object with all its tensors, which are on one device, in one."""

    pickled: bytes  # the object, with numbers for its tensors
    places: list[Place]
    content: Tensor  # (bytes,) uint8

    @staticmethod
    def of(thing: object) -> "Packed":
        """Pack an object. Raises RuntimeError if its tensors are on several devices."""
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(thing)
        places, parts, start = [], [], 0
        for tensor in pickler.tensors:
            part = tensor.contiguous().view(-1).view(torch.uint8)
            places.append(Place(start, tensor.dtype, tuple(tensor.shape)))
            parts += [part, part.new_empty(-len(part) % ALIGNMENT)]
            start += len(parts[-2]) + len(parts[-1])
        return Packed(file.getvalue(), places, torch.cat(parts) if parts else torch.empty(0))

    def unpacked(self) -> Any:
        """The object, with views of the one tensor."""
        unpickler = pickle.Unpickler(io.BytesIO(self.pickled))
        unpickler.persistent_load = list(map(self._tensor, self.places)).__getitem__
        return unpickler.load()

    def _tensor(self, place: Place) -> Tensor:
        end = place.start + prod(place.shape) * place.dtype.itemsize
        return self.content[place.start : end].view(place.dtype).view(place.shape)


@dataclass(frozen=True)
class _Packing:
    """Collate samples and pack the batch."""

    collate: Callable[[Any], Any]

    def __call__(self, samples: Any) -> Packed:
        return Packed.of(self.collate(samples))


class _Pickler(pickle.Pickler):
    """Writes one number for each distinct tensor."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: list[Tensor] = []
        self._numbers: dict[int, int] = {}  # by id

    def persistent_id(self, thing: object) -> int | None:
        if not isinstance(thing, Tensor):
            return None
        if id(thing) not in self._numbers:
            self._numbers[id(thing)] = len(self.tensors)
            self.tensors.append(thing)
        return self._numbers[id(thing)]


def can_share(device: str) -> bool:
    """True if processes can share tensors on the device; not every system shares a GPU's memory."""
    try:
        reduce_tensor(torch.empty(1, device=device))
    except RuntimeError:
        return False
    return True
