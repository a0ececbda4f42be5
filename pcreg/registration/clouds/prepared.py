"""A cloud for any number of registrations, whose descriptions are computed once."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from threading import RLock

import numpy as np

from pcreg.arrays import Array, like, to_device, to_host
from pcreg.features.base import Descriptor
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.geometry.voxel_size import Sample
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.inputs import ViewpointOption
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.outliers import MAX_COORDINATE_METRES
from pcreg.registration.clouds.preprocess import DescribedCloud, describe, sampled_twice
from pcreg.runtime import cached_property
from pcreg.runtime.errors import InputError

MAX_KEPT_POINTS = 5_000_000  # of a cloud that keeps its points in the local frame, in 120 MB
MAX_VIEWPOINT_EXTENTS = 20.0  # from a cloud to its sensor; five are usual for an object on a table
KEPT_ON_GPU = 4  # clouds, the latest, whose points stay on the GPU

_large = RLock()  # larger clouds have their points in memory one at a time


class PreparedCloud:
    """A cloud without outliers in its local frame, its voxel size, and descriptions.

    Each is computed when it is first needed, and kept: about 10 MB per voxel size for 20,000 points. Results
    depend on this cloud and the voxel size alone, not on earlier registrations or on the frame in which the
    cloud was given. Arrays with a row per point are on the cloud's device.
    """

    def __init__(
        self,
        cloud: Cloud,
        option: ViewpointOption = "auto",
        name: str | None = None,
        *,
        device: str = "cpu",
    ) -> None:
        """`option` is the `viewpoint` of `pcreg.register`; messages call the cloud `name`."""
        self.cloud, self.option, self.name, self.device = cloud, option, name, device
        self._described: dict[tuple[object, ...], DescribedCloud] = {}

    @cached_property
    def frame(self) -> LocalFrame:
        """Frame in which everything is computed."""
        return LocalFrame.of(self.cloud.box)

    @cached_property
    def units(self) -> str:
        """The units in which the cloud was given."""
        return self.cloud.units

    @property
    def points(self) -> Array:
        """Points (N, 3) float64, metres, in the local frame; more than five million are not kept."""
        if len(self.cloud.points) > MAX_KEPT_POINTS:
            return self._local_points()
        return self._kept_points if self.device == "cpu" else _kept_on_gpu(self)

    @cached_property
    def _kept_points(self) -> Array:
        return self._local_points()

    def _local_points(self) -> Array:
        return self.frame.local(to_device(self.cloud.points, self.device))

    @contextmanager
    def _points_in_turn(self) -> Iterator[Array]:
        """Yield the points, while no other large cloud has its own in memory."""
        with _large if len(self.cloud.points) > MAX_KEPT_POINTS else nullcontext():
            yield self.points

    @cached_property
    def stated(self) -> np.ndarray | None:
        """Sensor position in the given frame, by the caller or the file, or None.

        (3,), or (N, 3) with a position for each point, on the host. Raises InputError if the caller gives
        more or fewer positions than rows, and for a position that is not finite or is beyond 1e12 m.
        """
        if isinstance(self.option, str):
            stated = np.zeros(3) if self.option == "sensor" else self.cloud.viewpoint
        elif (stated := np.asarray(self.option, dtype=np.float64)).ndim == 2:
            stated = self.cloud.viewpoints_of_points(stated, self.name or "cloud")
        if stated is not None and np.abs(stated).max(initial=0) > MAX_COORDINATE_METRES:
            beyond = f"a viewpoint lies beyond {MAX_COORDINATE_METRES:g} m"
            raise InputError(f"{self.name or 'cloud'}: {beyond}; give another, or none")
        return stated

    @cached_property
    def viewpoint(self) -> Viewpoint | None:
        """Stated viewpoint in the local frame."""
        if self.stated is None:
            return None
        position = self.frame.local(self.stated)
        return Viewpoint(position if position.ndim == 1 else to_device(position, self.device), known=True)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on finite rows that were left out, and on a stated viewpoint far from the points."""
        if self.stated is None or self.stated.ndim == 2:
            return self.cloud.notes
        (low, high), place = self.cloud.box, self.stated
        far, size = np.linalg.norm(place - place.clip(low, high)), np.linalg.norm(high - low)
        doubt = "state it in the frame of the cloud, or leave it out"
        note = f"the sensor is {far:,.0f} m away, and the points are {size:,.3g} m across: {doubt}"
        return (*self.cloud.notes, note) if far > MAX_VIEWPOINT_EXTENTS * size else self.cloud.notes

    @cached_property
    def sample(self) -> Sample:
        """Points from which the voxel size is computed; InputError if the cloud has no extent."""
        with self._points_in_turn() as points:
            return Sample.of(points, self.name or "cloud")

    @cached_property
    def voxel(self) -> float:
        """Voxel size in metres that suits this cloud by itself; InputError as for `sample`."""
        return self.sample.voxel()

    @cached_property
    def extent(self) -> float:
        """Extent of the middle of the cloud in metres; InputError as for `sample`."""
        return self.sample.extent

    def enlarged(self, factor: float) -> "PreparedCloud":
        """Multiply all coordinates, and those of a stated viewpoint, by a factor."""
        option = self.option if isinstance(self.option, str) else np.asarray(self.option) * factor
        viewpoint = None if self.cloud.viewpoint is None else self.cloud.viewpoint * factor
        cloud = replace(self.cloud, points=self.cloud.points * factor, viewpoint=viewpoint)
        return PreparedCloud(cloud, option, self.name, device=self.device)

    def at(
        self,
        descriptor: Descriptor,
        decided: Viewpoint | None = None,
        *,
        twice: bool = False,
        around: bool = False,
    ) -> DescribedCloud:
        """Describe the cloud at the descriptor's voxel size, in its local frame.

        The viewpoint is the stated one, else the one `decided` at another voxel size, else it is estimated at
        this one, or if `around`, the cloud is an object seen from places around it. With `twice`, features
        are means over two samples of the cloud. `rows` of the result are rows of the cloud as it was given.
        Raises InputError when too few points are left.
        """
        estimated = None if self.viewpoint else decided
        place = None if estimated is None else tuple(estimated.position.tolist())
        settings = descriptor.name, descriptor.fingerprint, descriptor.device, descriptor.voxel
        key = (*settings, place, twice, around)
        if key not in self._described:
            self._described[key] = self._describe(descriptor, estimated, twice, around)
        return self._described[key]

    def _describe(
        self, descriptor: Descriptor, estimated: Viewpoint | None, twice: bool, around: bool
    ) -> DescribedCloud:
        if twice:
            return sampled_twice(self.at(descriptor, estimated), descriptor)
        name, viewpoint = self.name or "cloud", self.viewpoint or estimated
        try:
            with self._points_in_turn() as points:
                found = describe(points, descriptor, name, viewpoint, around=around)
        except InputError as error:  # too few points are left: the notes may say why
            raise InputError("; ".join([str(error), *self.notes])) from error
        if self.cloud.rows is None:
            return found
        return replace(found, rows=like(self.cloud.rows[to_host(found.rows)], found.rows))


@lru_cache(maxsize=KEPT_ON_GPU)
def _kept_on_gpu(cloud: PreparedCloud) -> Array:
    return cloud._local_points()
