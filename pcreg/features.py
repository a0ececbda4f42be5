"""Descriptions of clouds kept on disk, so that each is computed once whatever is measured with it.

A file goes by a checksum over everything that its contents depend on: the points of the cloud, the
descriptor with its settings and weights, the versions of the packages and the code that computed it.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from pcreg.descriptors import Description, Descriptor
from pcreg.errors import InputError
from pcreg.files import replacing

DESCRIBING = ("batch", "descriptors", "hierarchy", "layers", "resunet")  # modules of pcreg


@dataclass(frozen=True)
class Described:
    """A description as it was kept, and what it took to compute."""

    description: Description
    seconds: float


class FeatureCache:
    """Descriptions by `descriptor` in `folder`; `identity` says what they depend on besides the points."""

    def __init__(self, folder: str | Path, descriptor: Descriptor, identity: dict[str, Any]):
        self.folder = Path(folder) / _folder(descriptor.name, identity)
        self.descriptor = descriptor

    def file_of(self, points: np.ndarray) -> Path:
        """The file with the description of the cloud (N, 3), which is computed if there is none."""
        points = np.ascontiguousarray(points, dtype=np.float64)
        path = self.folder / f"{_digest(points.tobytes())}.npz"
        if not path.is_file():
            start = perf_counter()
            with _repeatable():
                description = self.descriptor.describe(points)
            seconds = perf_counter() - start
            with replacing(path) as temporary:
                np.savez(
                    temporary, points=description.points, features=description.features, seconds=seconds
                )
        return path


def read_described(path: Path) -> Described:
    """The description in a file of the cache; InputError if it is damaged."""
    try:
        with np.load(path) as arrays:
            description = Description(arrays["points"], arrays["features"])
            return Described(description, float(arrays["seconds"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: kept features are damaged; delete the file and run again") from error


def _folder(name: str, identity: dict[str, Any]) -> str:
    depends = json.dumps([identity, describing_code()], sort_keys=True)
    return f"{name}-{_digest(depends)}"


def describing_code() -> str:
    """A checksum over the source code that descriptions come from: changed code, other features."""
    checkout = Path(__file__).resolve().parents[1]
    rooms = [*sorted((checkout / "kernels").glob("*.py"))]
    rooms += [checkout / "pcreg" / f"{name}.py" for name in DESCRIBING]
    return _digest(b"".join(path.read_bytes() for path in rooms))


@contextmanager
def _repeatable() -> Iterator[None]:
    """Sums in a fixed order, on a GPU too."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)


def _digest(content: str | bytes) -> str:
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:24]
