"""Local descriptors of a cloud, one at each of its downsampled points.

Every descriptor downsamples the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance.
"""

from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pcreg.arrays import Array, namespace, take, to_device
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.runtime.errors import InputError

OnDevice = TypeVar("OnDevice", bound="Description")


@dataclass(frozen=True)
class Description:
    """Described points, on the device of the descriptor: row n of the features describes point n."""

    points: Array  # (M, 3) float64, metres, rows of the cloud that was described
    features: Array  # (M, C) float32

    def on(self: OnDevice, device: str) -> OnDevice:
        """Return a copy with its arrays on another device: NumPy for `cpu`, else tensors."""
        moved = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in moved.items():
            if getattr(value, "ndim", 0) and value.shape != (3,):  # a single viewpoint stays on the host
                moved[name] = to_device(value, device)
        return replace(self, **moved)

    def of_rows(self, rows: NDArray[np.int64]) -> "Description":
        """Return the description of some of the points."""
        return Description(self.points[rows], self.features[rows])


@runtime_checkable
class Descriptor(Protocol):
    """Interface of a descriptor for matching and evaluation."""

    name: str
    voxel: float  # metres
    fingerprint: str  # identifies the learned weights and their use; empty without weights
    device: str  # of the descriptions, such as cpu
    reflection_invariant: bool  # a cloud and its mirror image have the same features

    @property
    def label(self) -> str:
        """Name in messages and captions."""
        ...

    def describe(self, points: Array, viewpoints: Array | None = None) -> Description:
        """Describe a cloud. The same points give the same description.

        Args:
            points: (N, 3) float64, metres, on any device.
            viewpoints: (N, 3) float64, metres, the sensor position of each point; by default the origin.

        Returns:
            The description, on the descriptor's device.
        """
        ...


def check_voxel(voxel: float) -> None:
    """Raise InputError unless the voxel size is a number, positive and finite."""
    if isinstance(voxel, bool) or not isinstance(voxel, Real) or not 0 < voxel < np.inf:
        raise InputError(f"voxel {voxel!r} is not a size; use a positive number of metres")


def checked(descriptor: Descriptor, found: Description) -> Description:
    """Return the description; raise InputError unless each point has a row of finite features."""
    if len(found.points) == len(found.features) and namespace(found.features).isfinite(found.features).all():
        return found
    raise InputError(
        f"{type(descriptor).__name__}.describe() returned {len(found.points)} points and features of shape "
        f"{tuple(found.features.shape)}; have it return finite numbers for each point"
    )


def downsampled(
    points: Array, viewpoints: Array | None, voxel: float, device: str
) -> tuple[Array, Array | None]:
    """Return one point (M, 3) per voxel, and its viewpoint if given, float64 on a device.

    Raises InputError for points or viewpoints that are not finite rows x y z.
    """
    points = _rows("points", points, device)
    if viewpoints is not None:
        if len(viewpoints) != len(points):
            raise InputError(f"{len(viewpoints)} viewpoints of {len(points)} points; give a row for each")
        viewpoints = _rows("viewpoints", viewpoints, device)
    rows = voxel_downsample(points, voxel)
    return take(points, rows), None if viewpoints is None else take(viewpoints, rows)


def _rows(name: str, given: Array, device: str) -> Array:
    rows = to_device(given, device)
    xp = namespace(rows)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise InputError(f"{name} of shape {tuple(rows.shape)}: give rows x y z, (N, 3)")
    rows = xp.astype(rows, xp.float64, copy=False)
    if not xp.all(xp.isfinite(rows)):
        raise InputError(f"{name} hold NaN or infinity; leave these rows out")
    return rows
