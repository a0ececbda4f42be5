"""A cloud that is registered with any number of others, and what is computed of it once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock

import numpy as np

from pcreg.geometry.viewpoint import Viewpoint
from pcreg.geometry.voxel_size import Sample
from pcreg.io.cloud import Cloud
from pcreg.registration.backend import CPU, Backend
from pcreg.registration.clouds.inputs import ViewpointOption
from pcreg.registration.clouds.local_frame import LocalFrame, LocalPoints, local_points
from pcreg.registration.clouds.preprocess import DescribedCloud, DownsampledCloud, describe
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.cached_property import cached_property

MAX_KEPT_POINTS = 5_000_000  # of a cloud that keeps them in its local frame, in 120 MB

_large = RLock()  # clouds of more points have them there in turn


class PreparedCloud:
    """A cloud without outliers in its local frame, its scale, and its descriptions by voxel size.

    Each is computed when it is first needed, and kept: about 10 MB per voxel size for 20,000 points. What is
    computed depends on this cloud and the voxel size alone, never on registrations before, and none of it on
    the frame in which the cloud was given.
    """

    _points: LocalPoints | None = None

    def __init__(
        self,
        cloud: Cloud,
        option: ViewpointOption = "auto",
        name: str | None = None,
        *,
        is_mirrored: bool = False,
        backend: Backend = CPU,
    ) -> None:
        """`option` is that of `pcreg.register` on the viewpoint; messages call the cloud `name`.

        The `backend` keeps its points and chooses its scale.
        """
        self.cloud, self.option, self.name, self.is_mirrored = cloud, option, name, is_mirrored
        self.backend = backend
        self._described: dict[tuple[object, ...], DescribedCloud] = {}

    @cached_property
    def frame(self) -> LocalFrame:
        """The frame in which everything is computed."""
        return LocalFrame.of(self.cloud.box)

    @property
    def points(self) -> np.ndarray:
        """Points (N, 3) float64 on the host, metres, in the local frame.

        Computed at each call for more than five million points, or where they lie on a device.
        """
        return np.asarray(self._local_points())

    def _local_points(self) -> LocalPoints:
        """The points where the backend has them."""
        if self._points is not None:
            return self._points
        points = self.backend.local_points(self.cloud.points, self.frame, self.is_mirrored)
        if len(points) <= MAX_KEPT_POINTS:
            self._points = points
        return points

    def load(self) -> None:
        """Find the local frame now and, if they are kept here, compute the points."""
        if len(self.cloud.points) <= MAX_KEPT_POINTS:
            self._local_points()

    @contextmanager
    def _points_in_turn(self) -> Iterator[LocalPoints]:
        """The points, while no other large cloud has its own in memory."""
        if len(self.cloud.points) <= MAX_KEPT_POINTS:
            yield self._local_points()
            return
        with _large:
            yield self._local_points()

    @cached_property
    def stated(self) -> np.ndarray | None:
        """Where caller or file say that the sensor stood, in the given frame; None: neither does.

        (3,), or (N, 3) from where each point was seen. Raises InputError if the caller gives more or fewer
        places than rows, or one that is not finite for a point.
        """
        if isinstance(self.option, str):
            return np.zeros(3) if self.option == "sensor" else self.cloud.viewpoint
        stated = np.asarray(self.option, dtype=np.float64)
        if stated.ndim == 1:
            return stated
        return self.cloud.viewpoints_of_points(stated, self.name or "cloud")

    @cached_property
    def viewpoint(self) -> Viewpoint | None:
        """The stated viewpoint in the local frame."""
        if self.stated is None:
            return None
        return Viewpoint(local_points(self.stated, self.frame, self.is_mirrored), known=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else than NaN and infinity was left out and why, a sentence each."""
        return self.cloud.notes

    @cached_property
    def sample(self) -> Sample:
        """The points from which its scale is taken; InputError if it has none."""
        with self._points_in_turn() as points:
            return self.backend.sample(points, self.name or "cloud")

    @cached_property
    def voxel(self) -> float:
        """The voxel size in metres that suits this cloud by itself; InputError as for `sample`."""
        return self.sample.voxel()

    @property
    def extent(self) -> float:
        """The extent of its middle in metres; InputError as for `sample`."""
        return self.sample.extent

    @cached_property
    def mirrored(self) -> "PreparedCloud":
        """The cloud with the first axis of its local frame flipped, and a stated viewpoint with it."""
        return PreparedCloud(self.cloud, self.option, self.name, is_mirrored=True, backend=self.backend)

    def enlarged(self, factor: float) -> "PreparedCloud":
        """The cloud with all coordinates, and those of a stated viewpoint, multiplied by a factor."""
        option = self.option if isinstance(self.option, str) else np.asarray(self.option) * factor
        viewpoint = None if self.cloud.viewpoint is None else self.cloud.viewpoint * factor
        cloud = replace(self.cloud, points=self.cloud.points * factor, viewpoint=viewpoint)
        return PreparedCloud(cloud, option, self.name, is_mirrored=self.is_mirrored, backend=self.backend)

    def at(self, scale: SingleScaleRegistrar, decided: Viewpoint | None = None) -> DescribedCloud:
        """The cloud described at that scale, in its local frame.

        Unless its viewpoint is stated it is the one `decided` at another scale, if that is given, or
        estimated at this one. The described points' rows are those of the cloud as it was given. Raises
        InputError when too few points are left at this scale.
        """
        descriptor, estimated = scale.descriptor, None if self.viewpoint else decided
        place = None if estimated is None else tuple(estimated.position.tolist())
        key = (descriptor.name, descriptor.fingerprint, descriptor.device, descriptor.voxel, place)
        if key not in self._described:
            self._described[key] = self._describe(scale, estimated)
        return self._described[key]

    def _describe(self, scale: SingleScaleRegistrar, estimated: Viewpoint | None) -> DescribedCloud:
        return describe(self._downsample(scale, estimated), scale.descriptor, scale.backend)

    def _downsample(self, scale: SingleScaleRegistrar, estimated: Viewpoint | None) -> DownsampledCloud:
        """Its rows are those of the cloud as it was given."""
        with self._points_in_turn() as points:
            downsampled = scale.downsample(points, self.name or "cloud", self.viewpoint or estimated)
        rows = self.cloud.rows
        return downsampled if rows is None else replace(downsampled, rows=rows[downsampled.rows])
