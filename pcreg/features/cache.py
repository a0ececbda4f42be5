"""Cache of descriptions on disk, so that several evaluations compute each description once.

Checksums in a file's path cover everything that the description depends on: the points of the cloud, the
descriptor with its settings and weights, the versions of the packages and the code.
"""

import hashlib
import inspect
import json
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from pcreg.features.base import Description, Descriptor, checked
from pcreg.io.pairs import PairDataset, points_of
from pcreg.runtime.device import deterministic
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import DAMAGED_NPZ, replacing
from pcreg.runtime.records import DESCRIBING, code_fingerprint


class FeatureCache:
    """Descriptions by `descriptor` in `folder`; `identity` holds all settings that change a description."""

    def __init__(self, folder: str | Path, descriptor: Descriptor, identity: dict[str, Any]):
        code = code_fingerprint(*DESCRIBING, inspect.getfile(type(descriptor)))
        depends = json.dumps([identity, code], sort_keys=True)
        self.folder = Path(folder) / f"{descriptor.name}-{_digest(depends.encode())}"
        self.descriptor = descriptor

    def file_of(self, points: np.ndarray) -> Path:
        """Return the file with the description of a cloud (N, 3); compute the file if it is missing."""
        points = np.ascontiguousarray(points, dtype=np.float64)
        path = self.folder / f"{_digest(points.tobytes())}.npz"
        if not path.is_file():
            clock = process_time if self.descriptor.device == "cpu" else perf_counter
            start = clock()
            with deterministic():
                found = self.descriptor.describe(points).on("cpu")
            seconds = clock() - start
            checked(self.descriptor, found)
            with replacing(path) as temporary:
                np.savez(temporary, points=found.points, features=found.features, seconds=seconds)
        return path


def describe_cloud(dataset: PairDataset, features: FeatureCache, name: str) -> Path:
    """Return the file with the description of a cloud of the data set."""
    return features.file_of(points_of(dataset, name))


def read_described(path: Path) -> tuple[Description, float]:
    """Read a description from the cache, and the seconds of its computation.

    Seconds are CPU time on the CPU, elapsed time on a GPU. Raises InputError for a damaged or missing file.
    """
    if not path.is_file():
        raise InputError(
            f"{path}: kept features were removed during the run; do not change the folder, and run again"
        )
    damaged = f"{path}: kept features are damaged; delete the file and run again"
    with refusing(damaged, *DAMAGED_NPZ), np.load(path) as arrays:
        return Description(arrays["points"], arrays["features"]), float(arrays["seconds"])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
