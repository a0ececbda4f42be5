"""Local descriptors: what a cloud looks like around each of its points.

Every descriptor thins the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance. The learned one is in pcreg.features.fcgf,
apart because it needs PyTorch, which takes a second to import.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Description:
    """Row n of the features describes row n of the points."""

    points: np.ndarray  # (M, 3) float64, metres, rows of the cloud that was described
    features: np.ndarray  # (M, C) float32


class Descriptor(Protocol):
    """What matching and evaluation ask of a descriptor."""

    name: str
    label: str  # what a reader is told
    voxel: float  # metres
    fingerprint: str  # changes with anything learned that the features depend on
    device: str  # on which it is computed, such as cpu

    def describe(self, points: np.ndarray) -> Description:
        """Describe the cloud (N, 3) float64; the same points give the same description."""
        ...
