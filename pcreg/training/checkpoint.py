"""The state of a training, to go on from exactly where it stopped."""

import pickle
from pathlib import Path
from typing import Any

import torch

from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing


def save_checkpoint(path: str | Path, **state: Any) -> None:
    """Write tensors and plain containers under their names; the file is whole or absent."""
    with replacing(path) as temporary:
        torch.save(state, temporary)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote, on the CPU. No code in the file is run.

    Raises InputError for a file that is missing, damaged or not a checkpoint.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such checkpoint; check the path")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError) as error:
        raise InputError(
            f"{path}: is no checkpoint of `pcreg train`, or a damaged one; use another"
        ) from error
