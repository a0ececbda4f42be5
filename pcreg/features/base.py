"""Local descriptors of a cloud, one at each of its downsampled points.

Every descriptor downsamples the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance.
"""

from dataclasses import dataclass, fields, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pcreg.arrays import Array, to_device

OnDevice = TypeVar("OnDevice", bound="Description")


@dataclass(frozen=True)
class Description:
    """Described points, on the device of the descriptor: row n of the features describes point n."""

    points: Array  # (M, 3) float64, metres, rows of the cloud that was described
    features: Array  # (M, C) float32

    def on(self: OnDevice, device: str) -> OnDevice:
        """Return the same with its arrays on another device: NumPy for `cpu`, else tensors."""
        moved = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in moved.items():
            if getattr(value, "ndim", 0) and value.shape != (3,):  # one place is always on the host
                moved[name] = to_device(value, device)
        return replace(self, **moved)

    def of_rows(self, rows: NDArray[np.int64]) -> "Description":
        """Description of some of the points."""
        return Description(self.points[rows], self.features[rows])


@runtime_checkable
class Descriptor(Protocol):
    """Interface of a descriptor for matching and evaluation."""

    name: str
    voxel: float  # metres
    fingerprint: str  # changes with anything learned that the features depend on
    device: str  # on which it is computed, such as cpu
    reflection_invariant: bool  # a cloud and its mirror image have the same features

    @property
    def label(self) -> str:
        """Name in messages and captions."""
        ...

    def describe(self, points: Array, viewpoints: Array | None = None) -> Description:
        """Describe a cloud. The same points give the same description.

        Args:
            points: (N, 3) float64, metres, on any device.
            viewpoints: (N, 3) float64, metres, from where each point was seen; by default the origin.

        Returns:
            The description, on the descriptor's device.
        """
        ...
