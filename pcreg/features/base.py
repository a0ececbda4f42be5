"""Local descriptors: what a cloud looks like around each of its points.

Every descriptor downsamples the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pcreg.arrays import to_host
from pcreg.geometry.rows import Rows

Scalar = TypeVar("Scalar", bound=np.generic)


class ReadAsArray(Generic[Scalar]):
    """A field of a dataclass that takes rows wherever they are, and whose value is always an array."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, instance: object, rows: Rows) -> None:
        vars(instance)[self.name] = rows

    def __get__(self, instance: object, owner: type | None = None) -> NDArray[Scalar]:
        if instance is None:
            raise AttributeError(self.name)  # tells a dataclass that there is no default
        return to_host(vars(instance)[self.name])


@dataclass(frozen=True)
class Nodes:
    """Points of a coarse level of a network that matches clouds, too (pcreg.models.matcher)."""

    points: ReadAsArray[np.float64] = ReadAsArray()  # (K, 3), metres, in the frame of the cloud
    normals: ReadAsArray[np.float32] = ReadAsArray()  # (K, 3), of unit length or zero
    features: ReadAsArray[np.float32] = ReadAsArray()  # (K, D)


@dataclass(frozen=True)
class Description:
    """Row n of the features describes row n of the points."""

    points: NDArray[np.float64]  # (M, 3), metres, rows of the cloud that was described
    features: ReadAsArray[np.float32] = ReadAsArray()  # (M, C)
    nodes: Nodes | None = field(default=None, kw_only=True)  # by a network with a matcher

    @property
    def features_in_place(self) -> Rows:
        """The features (M, C) where they were computed, for who can use them there."""
        rows: Rows = vars(self)["features"]
        return rows

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
