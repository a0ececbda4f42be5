"""Content of a .safetensors file of weights, as arrays."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcreg.models.architecture import Architecture, MatcherArchitecture
from pcreg.runtime import cached_property
from pcreg.runtime.errors import InputError

KEY = "pcreg.architecture"  # in the file's metadata


@dataclass(frozen=True)
class StoredWeights:
    """Parameters and statistics of a network, by name; float16 ones as float32."""

    path: Path
    architecture: Architecture
    tensors: dict[str, NDArray[Any]]

    @cached_property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 over all tensors."""
        return fingerprint(self.tensors)

    def check(self, wanted: Mapping[str, tuple[int, ...]]) -> None:
        """Raise InputError unless these are the names and shapes of the tensors."""
        found = {name: tensor.shape for name, tensor in self.tensors.items()}
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                raise InputError(
                    f"{self.path}: does not fit the architecture that it names ({name} is "
                    f"{found.get(name, 'missing')} and should be {wanted.get(name, 'absent')}); "
                    "use weights written by `pcreg train`"
                )


def found(path: str | Path) -> Path:
    """The path, or that of the shipped weights that it names, such as `outdoor`, if there is no such file."""
    path = Path(path)
    shipped = Path(str(files("pcreg.weights"))) / f"{path.stem}.safetensors"
    is_name = str(path.parent) in (".", "weights") and path.suffix in ("", ".safetensors")
    return shipped if is_name and shipped.is_file() and not path.is_file() else path


def read_weights(path: str | Path) -> StoredWeights:
    """Read a .safetensors file of weights.

    Raises:
        InputError: The file is missing, damaged or of another kind, or a number in it is not finite.
    """
    path = found(path)
    with _opened(path) as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, tensor in tensors.items():
        if tensor.dtype == np.float16:
            tensors[name] = tensor.astype(np.float32)
        if not np.isfinite(tensors[name]).all():
            raise InputError(
                f"{path}: {name} holds a number that is not finite; use weights written by `pcreg train`"
            )
    return StoredWeights(path, _architecture(path, metadata), tensors)


def read_architecture(path: str | Path) -> Architecture:
    """Read the architecture alone; InputError as for `read_weights`."""
    path = found(path)
    with _opened(path) as file:
        metadata = file.metadata() or {}
    return _architecture(path, metadata)


def fingerprint(tensors: Mapping[str, NDArray[Any]]) -> str:
    """First 16 digits of the SHA-256 over the names and numbers of tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor))
    return digest.hexdigest()[:16]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file by safetensors, whose errors become InputError within, too."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError(f"{path}: no such weights; check the path")
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path}: is no .safetensors file, or a damaged one; use weights of `pcreg train`"
        ) from error


def _architecture(path: Path, metadata: dict[str, str]) -> Architecture:
    if KEY not in metadata:
        raise InputError(
            f"{path}: does not say which network it belongs to; use weights written by `pcreg train`"
        )
    try:
        fields = _with_tuples(json.loads(metadata[KEY]))
        if fields.get("matcher"):
            fields["matcher"] = MatcherArchitecture(**_with_tuples(fields["matcher"]))
        return Architecture(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: was written for another kind of network ({error}); use weights of this version"
        ) from error


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
