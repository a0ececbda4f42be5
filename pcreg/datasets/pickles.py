"""Pickles and .pth files from untrusted sources, read without running code in them.

A pickle may name any function and call it. Here only functions that rebuild NumPy arrays and a few containers
are admitted; any other name is refused before it is imported.
"""

import collections
import pickle
import re
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcreg.runtime.errors import InputError


def load_pickle(path: str | Path) -> Any:
    """Plain values, containers and NumPy arrays pickled in `path`; InputError for anything else."""
    try:
        with open(path, "rb") as file:
            return _PlainUnpickler(file, path).load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise _unreadable(path, error) from error


def load_pth(path: str | Path) -> np.ndarray:
    """The array that torch.save wrote to `path` as a NumPy array or as a tensor, of any shape.

    Both of torch's formats are read, the zip archive and the one before it. Raises InputError for a
    file that is missing, damaged, or holds anything else.
    """
    import torch

    try:
        with _REGISTRATION, torch.serialization.safe_globals(_ADMITTED_BY_TORCH):
            value = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()  # raises for dtypes that NumPy lacks, such as bfloat16
    except Exception as error:
        if named := re.search(r"(?:GLOBAL|function|class) ([\w.]+\.[\w.]+)", str(error)):
            raise _refused(path, named[1]) from error
        raise _unreadable(path, error) from error
    if not isinstance(value, np.ndarray):
        raise InputError(f"{path}: holds a {type(value).__name__}; save the points alone, as an array (N, 3)")
    return value


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, path: str | Path):
        super().__init__(file)
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (admitted := _ADMITTED.get(f"{module}.{name}")) is None:
            raise _refused(self.path, f"{module}.{name}")
        return admitted


def _latin1(text: str, _encoding: str) -> bytes:
    """Encode text for old pickle protocols, ignoring the codec that the file names."""
    return text.encode("latin1")


# NumPy's functions that rebuild arrays and scalars; its core is called core or _core, by version
_REBUILD = {
    "multiarray._reconstruct": np.zeros(1).__reduce__()[0],
    "multiarray.scalar": np.float64(0).__reduce__()[0],
    "numeric._frombuffer": np.zeros(1).__reduce_ex__(5)[0],
}
_NUMPY = {f"numpy.{core}.{name}": each for core in ("core", "_core") for name, each in _REBUILD.items()}
_NUMPY |= {"numpy.ndarray": np.ndarray, "numpy.dtype": np.dtype}
_PLAIN = (set, frozenset, bytearray, complex)
_ADMITTED = _NUMPY | {
    f"{module}.{each.__name__}": each for module in ("builtins", "__builtin__") for each in _PLAIN
}
_ADMITTED |= {"_codecs.encode": _latin1, "collections.OrderedDict": collections.OrderedDict}
_NUMBERS = {type(np.dtype(code)) for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"]}
_ADMITTED_BY_TORCH = [(value, name) for name, value in _NUMPY.items()] + sorted(_NUMBERS, key=str)
_REGISTRATION = threading.Lock()  # PyTorch has one list of safe names per process


def _refused(path: str | Path, name: str) -> InputError:
    return InputError(
        f"{path}: refused, it asks for {name} and only NumPy arrays and plain containers are admitted; "
        "if you trust it, convert it to arrays yourself"
    )


def _unreadable(path: str | Path, error: Exception) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file; check the path")
    reason = re.split(r"\.?\s*\n|\. ", str(error))[0] or type(error).__name__
    return InputError(f"{path}: cannot be read ({reason}); it may be truncated or damaged: download it again")
