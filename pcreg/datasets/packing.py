"""An object with all its tensors in one, to hand it to another process.

A pyramid has a hundred tensors. To hand over one after another takes both processes longer than a GPU takes
to build them, and a view drags all of what it is a view of along.
"""

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import reduce_tensor

ALIGNMENT = 16  # bytes, which kernels load at once


class Place(NamedTuple):
    """Of a tensor in the one that holds it."""

    start: int  # bytes
    dtype: torch.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Packed:
    """An object and all its tensors, which are on one device."""

    pickled: bytes  # the object, with numbers for its tensors
    places: list[Place]  # of these
    content: Tensor  # (bytes,) uint8

    @staticmethod
    def of(thing: object) -> "Packed":
        """The object packed. Raises RuntimeError if its tensors are on several devices."""
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
        """The object again; its tensors are views of the one."""
        return _Unpickler(io.BytesIO(self.pickled), list(map(self._tensor, self.places))).load()

    def _tensor(self, place: Place) -> Tensor:
        end = place.start + prod(place.shape) * place.dtype.itemsize
        return self.content[place.start : end].view(place.dtype).view(place.shape)


@dataclass(frozen=True)
class Packing:
    """What `collate` makes of samples, packed."""

    collate: Callable[[Any], Any]

    def __call__(self, samples: Any) -> Packed:
        return Packed.of(self.collate(samples))


def can_share(device: str) -> bool:
    """Whether processes can share tensors on the device: not every system lets them share a GPU's memory."""
    try:
        reduce_tensor(torch.empty(1, device=device))
    except RuntimeError:
        return False
    return True


class _Pickler(pickle.Pickler):
    """Writes a number for each tensor, the same for the same one."""

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


class _Unpickler(pickle.Unpickler):
    """Reads these tensors for their numbers."""

    def __init__(self, file: io.BytesIO, tensors: list[Tensor]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, number: int) -> Tensor:
        return self._tensors[number]
