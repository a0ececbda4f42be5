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
        with _REGISTRATION, torch.serialization.safe_globals(_numpy_for_torch()):
            value = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()  # which NumPy may not be able to hold
    except Exception as error:
        if named := re.search(r"(?:GLOBAL|function|class) ([\w.]+\.[\w.]+)", str(error)):
            raise _refused(path, named[1]) from error
        raise _unreadable(path, error) from error
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"{path}: holds a {type(value).__name__}; save the points alone, as one (N, 3) array"
        )
    return value


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, path: str | Path):
        super().__init__(file)
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _refused(self.path, f"{module}.{name}") from None


def _latin1(text: str, _encoding: str) -> bytes:
    """Make bytes for old pickle protocols, whatever codec the file names."""
    return text.encode("latin1")


def _numpy_globals() -> dict[tuple[str, str], Any]:
    """The names in a pickled array or scalar, by the modules of NumPy 1 (core) and 2 (_core)."""
    rebuild = {  # from NumPy itself, as a version has one of the two modules only
        ("multiarray", "_reconstruct"): np.zeros(1).__reduce__()[0],
        ("multiarray", "scalar"): np.float64(0).__reduce__()[0],
        ("numeric", "_frombuffer"): np.zeros(1).__reduce_ex__(5)[0],
    }
    versions = {
        (f"numpy.{core}.{module}", name): function
        for core in ("core", "_core")
        for (module, name), function in rebuild.items()
    }
    return versions | {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}


_NUMPY = _numpy_globals()
_ADMITTED = _NUMPY | {
    ("_codecs", "encode"): _latin1,
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")
        for kind in (set, frozenset, bytearray, complex)
    },
}
_REGISTRATION = threading.Lock()  # torch's list of safe names is one per process


def _numpy_for_torch() -> list[Any]:
    numbers = {type(np.dtype(code)) for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"]}
    return [(value, f"{module}.{name}") for (module, name), value in _NUMPY.items()] + sorted(
        numbers, key=str
    )


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
