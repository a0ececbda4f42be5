"""A cloud that is registered with any number of others, and what is computed of it once."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from pcreg.geometry.viewpoint import Viewpoint, ViewpointOption
from pcreg.geometry.voxel_size import Sample
from pcreg.io.cloud import Cloud
from pcreg.registration.preprocess import DescribedCloud, DownsampledCloud, describe
from pcreg.registration.single_scale import SingleScaleRegistrar

MIRROR = np.array([-1.0, 1.0, 1.0])


class PreparedCloud:
    """The points of a cloud without outliers, its scale, and its descriptions by voxel size.

    Each is computed when it is first needed, and kept: about 10 MB per voxel size for 20,000 points. What is
    computed depends on this cloud and the voxel size alone, never on registrations before.
    """

    def __init__(self, cloud: Cloud, viewpoint: ViewpointOption = "auto", name: str | None = None) -> None:
        """`auto` takes the viewpoint that the file of the cloud states; messages call it `name`."""
        self.cloud, self.name = cloud, name
        stated = cloud.viewpoint is not None and isinstance(viewpoint, str) and viewpoint == "auto"
        self.viewpoint: ViewpointOption = cloud.viewpoint if stated else viewpoint
        self._described: dict[tuple[object, ...], DescribedCloud] = {}

    @property
    def points(self) -> np.ndarray:
        """(N, 3) float64, metres."""
        return self.cloud.points

    @property
    def notes(self) -> tuple[str, ...]:
        """What else than NaN and infinity was left out and why, a sentence each."""
        return self.cloud.notes

    @cached_property
    def sample(self) -> Sample:
        """The points from which its scale is taken; InputError if it has none."""
        return Sample.of(self.points, self.name or "cloud")

    @cached_property
    def voxel(self) -> float:
        """The voxel size in metres that suits this cloud by itself; InputError as for `sample`."""
        return self.sample.voxel()

    @cached_property
    def mirrored(self) -> "PreparedCloud":
        """The cloud with its first axis flipped."""
        return PreparedCloud(mirror(self.cloud), name=self.name)

    def at(self, scale: SingleScaleRegistrar, viewpoint: Viewpoint | None = None) -> DescribedCloud:
        """The cloud described at that scale, with the `viewpoint` decided at another scale if it is given.

        The described points' rows are those of the cloud as it was given. Raises InputError when too few
        points are left at this scale.
        """
        descriptor = scale.descriptor
        place = None if viewpoint is None else (*viewpoint.position.tolist(), viewpoint.known)
        key = (descriptor.name, descriptor.fingerprint, descriptor.device, descriptor.voxel, place)
        if key not in self._described:
            self._described[key] = self._describe(scale, self.viewpoint if viewpoint is None else viewpoint)
        return self._described[key]

    def _describe(self, scale: SingleScaleRegistrar, viewpoint: ViewpointOption) -> DescribedCloud:
        return describe(self._downsample(scale, viewpoint), scale.descriptor)

    def _downsample(self, scale: SingleScaleRegistrar, viewpoint: ViewpointOption) -> DownsampledCloud:
        """Its rows are those of the cloud as it was given."""
        downsampled = scale.downsample(self.points, self.name or "cloud", viewpoint)
        rows = self.cloud.rows
        return downsampled if rows is None else replace(downsampled, rows=rows[downsampled.rows])


def mirror(cloud: Cloud) -> Cloud:
    """The cloud with its first axis flipped, without a stated viewpoint."""
    return replace(cloud, points=cloud.points * MIRROR, viewpoint=None)
