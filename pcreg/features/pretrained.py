"""The trained weights that come with a checkout: which of them suit a cloud, and at what voxel size.

A network of ours knows no unit of length, so that weights serve at any voxel size; but rooms seen by
depth cameras and places seen by spinning LiDARs look different at any size.
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pcreg.runtime.errors import InputError

FOLDER = Path(str(files("pcreg.weights")))
MIN_OUTDOOR_VOXEL = 0.1  # metres, from which on clouds are taken for LiDAR scans
MAX_VOXEL_RATIO = 3.0  # between a cloud's own voxel size and that of the training


def weights_for(voxel: float) -> Path:
    """The file of the weights for clouds that suit this voxel size, metres; InputError if it is missing."""
    path = FOLDER / ("outdoor.safetensors" if voxel >= MIN_OUTDOOR_VOXEL else "indoor.safetensors")
    if not path.is_file():
        raise InputError(
            f"{path}: the shipped weights are missing; take them from a checkout of this version, name other "
            "weights, or use the descriptor fpfh"
        )
    return path


def checksum() -> str:
    """Of all shipped weights: records that were made with others belong to another run."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def scales(trained: float, sizes: Sequence[float]) -> list[float]:
    """Voxel sizes to try with weights that were `trained` at one, for clouds that suit `sizes`, best first.

    The voxel size of the training, if the first of the clouds' own sizes is near it; the others in
    proportion, but none below half of the clouds' own finest, which would cost time and gain nothing.
    """
    first = trained if trained / MAX_VOXEL_RATIO <= sizes[0] <= trained * MAX_VOXEL_RATIO else sizes[0]
    others = [first * (size / sizes[0]) for size in sizes[1:]]
    return [first, *(size for size in others if size >= min(sizes) / 2)]
