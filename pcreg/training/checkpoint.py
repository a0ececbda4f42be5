"""The state of a training, from which it continues exactly where it stopped."""

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch

from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import DAMAGED_NPZ, replacing
from pcreg.runtime.records import first_difference

UNREADABLE = *DAMAGED_NPZ, UnpicklingError, TypeError
PARTS = ("network", "optimizer", "scheduler", "state", "identity")


@dataclass
class TrainState:
    """Progress of a training."""

    epoch: int = 0
    batch: int = 0  # next batch of the epoch
    step: int = 0  # optimiser steps so far
    best: list[float] = field(default_factory=lambda: [-1.0, -1.0])  # feature match recall, inlier ratio


def save_checkpoint(path: str | Path, **state: Any) -> None:
    """Write named tensors and plain containers; a failure leaves no partial file."""
    torch.save(state, buffer := BytesIO())  # in memory: on a full disk torch.save raises RuntimeError
    with replacing(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint to the CPU, running no code in it; InputError if it is damaged or none."""
    words = "is not a checkpoint of `pcreg train`, or a damaged one; delete it, or give another out="
    with refusing(f"{path}: {words}", *UNREADABLE), ZipFile(path) as archive:
        if archive.testzip():  # torch.load compares no checksums
            raise BadZipFile
        return dict(torch.load(path, map_location="cpu", weights_only=True))


def load_own_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """Read a checkpoint; InputError if a training of another identity wrote it."""
    parts = load_checkpoint(path)
    if missing := set(PARTS) - parts.keys():
        raise InputError(f"{path}: is no checkpoint of `pcreg train`, lacks {min(missing)}; give a new out=")
    if difference := first_difference(parts["identity"], identity):
        raise InputError(f"{path}: belongs to another training ({difference}); give this one its own out=")
    return parts
