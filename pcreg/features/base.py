"""Local descriptors: what a cloud looks like around each of its points.

Every descriptor downsamples the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Nodes:
    """Points of a coarse level of a network that matches clouds, too (pcreg.models.matcher)."""

    points: NDArray[np.float64]  # (K, 3), metres, in the frame of the cloud
    normals: NDArray[np.float32]  # (K, 3), of unit length or zero
    features: NDArray[np.float32]  # (K, D)


@dataclass(frozen=True)
class Description:
    """Row n of the features describes row n of the points."""

    points: NDArray[np.float64]  # (M, 3), metres, rows of the cloud that was described
    features: NDArray[np.float32]  # (M, C)
    nodes: Nodes | None = field(default=None, kw_only=True)  # by a network with a matcher

    def of_rows(self, rows: NDArray[np.int64]) -> "Description":
        """These of the points alone, with all nodes."""
        return Description(self.points[rows], self.features[rows], nodes=self.nodes)


class Descriptor(Protocol):
    """What matching and evaluation need of a descriptor."""

    name: str
    voxel: float  # metres
    fingerprint: str  # changes with anything learned that the features depend on
    device: str  # on which it is computed, such as cpu
    reflection_invariant: bool  # a cloud and its mirror image have the same features

    @property
    def label(self) -> str:
        """How messages and captions call it."""
        ...

    def describe(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None = None
    ) -> Description:
        """Describe the cloud (N, 3), each point of which was seen from its row of `viewpoints` (N, 3).

        By default all were seen from the origin. The same points give the same description.
        """
        ...
