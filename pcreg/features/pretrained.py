"""The shipped weights: the file that suits a cloud, and the voxel sizes to describe it at.

A network of ours knows no unit of length, so that weights serve at any voxel size; but rooms seen by
depth cameras and places seen by spinning LiDARs look different at any size.
"""

import hashlib
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pcreg.runtime.errors import InputError

FOLDER = Path(str(files("pcreg.weights")))
# Metres, from which on both a cloud is a LiDAR scan of a street. A smaller extent with as large a voxel is a
# room of few points: simulated scans of rooms extend over up to 7 m, most of streets over 19 m and more.
MIN_OUTDOOR_VOXEL, MIN_OUTDOOR_EXTENT = 0.1, 10.0
MAX_VOXEL_RATIO = 3.0  # between a cloud's own voxel size and that of the training


class Size(NamedTuple):
    """Size of clouds, by which weights are chosen."""

    voxel: float  # metres, that suits them by themselves
    extent: float = math.inf  # metres


def weights_for(voxel: float, extent: float = math.inf) -> Path:
    """File of the weights that suit this voxel size and extent, in metres; InputError if missing."""
    is_outdoor = voxel >= MIN_OUTDOOR_VOXEL and extent >= MIN_OUTDOOR_EXTENT
    path = FOLDER / ("outdoor.safetensors" if is_outdoor else "indoor.safetensors")
    if not path.is_file():
        raise InputError(
            f"{path}: the shipped weights are missing; take them from a checkout of this version, name other "
            "weights, or use the descriptor fpfh"
        )
    return path


def checksum() -> str:
    """A checksum of all shipped weights: records made with others belong to another run."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def scales(trained: float, sizes: Sequence[float]) -> list[float]:
    """Voxel sizes to try with weights that were `trained` at one, for clouds that suit `sizes`, best first.

    First the voxel size of the training, if the clouds' own is near it and they are no room of few points,
    half of which would be isolated there. The others are in proportion, but none below half of the finest.
    """
    near = trained / MAX_VOXEL_RATIO <= sizes[0] <= trained * MAX_VOXEL_RATIO
    is_sparse_room = trained < MIN_OUTDOOR_VOXEL <= sizes[0]
    first = trained if near and not is_sparse_room else sizes[0]
    others = [first * (size / sizes[0]) for size in sizes[1:]]
    return [first, *(size for size in others if size >= min(sizes) / 2)]
