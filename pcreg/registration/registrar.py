"""Registration of one pair, or of many pairs of few clouds, each of which is prepared once.

registrar = Registrar(device="cuda")
clouds = [registrar.prepare(points) for points in scans]
result = registrar.register(clouds[0], clouds[1])
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pcreg.features.base import Descriptor
from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import checksum, scales, weights_for
from pcreg.geometry.voxel_size import further_voxels
from pcreg.io.cloud import expanded
from pcreg.registration.fallback import register_at_scales
from pcreg.registration.inputs import (
    Points,
    ViewpointOption,
    as_cloud,
    check_seed,
    check_settings,
    check_viewpoint,
)
from pcreg.registration.local_frame import in_given_frames
from pcreg.registration.prepared import PreparedCloud
from pcreg.registration.result import Registration
from pcreg.registration.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    from pcreg.features.fcgf import FCGF

DESCRIPTORS = ("fcgf", "fpfh")


class Registrar:
    """Registers clouds by one descriptor, whose weights are loaded once, when they are first needed."""

    def __init__(
        self,
        *,
        descriptor: str = "fcgf",
        weights: str | Path | None = None,
        voxel: float | None = None,
        device: str = "cpu",
    ) -> None:
        """The options are those of `pcreg.register`; those of a cloud are arguments of `prepare`.

        Raises InputError for settings that cannot be used, and `weights` that cannot be read.
        """
        check_settings(voxel, weights, device)
        if descriptor not in DESCRIPTORS:
            raise InputError(f"descriptor {descriptor} is not known; use {' or '.join(DESCRIPTORS)}")
        if descriptor == "fpfh" and weights is not None:
            raise InputError(f"{weights}: fpfh takes no weights; leave one of the two out")
        self.descriptor, self.voxel, self.device = descriptor, voxel, device
        self.weights = None if weights is None else expanded(weights)
        self._loaded: dict[Path, FCGF] = {}
        if self.weights is not None:  # a wrong name is refused before clouds are read
            self._learned(0.0)

    def prepare(
        self,
        cloud: Points,
        *,
        name: str | None = None,
        units: str = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption = "auto",
    ) -> PreparedCloud:
        """The cloud, a path, an array or tensor (N, 3), or of Open3D, for any number of registrations.

        `units`, `columns` and `viewpoint` are as in `pcreg.register`, of this cloud. Messages call a file by
        its path and another cloud by `name`. Raises InputError for a cloud that cannot be used.
        """
        option = check_viewpoint(viewpoint)
        name = str(cloud) if isinstance(cloud, str | Path) else name
        prepared = PreparedCloud(as_cloud(cloud, name or "cloud", units, columns), option, name)
        _ = prepared.stated  # viewpoints that do not fit the cloud are refused here
        return prepared

    def register(
        self, source: "Points | PreparedCloud", target: "Points | PreparedCloud", *, seed: int = 0
    ) -> Registration:
        """Register source to target, each prepared or as `prepare` takes it, in metres.

        Same clouds and seed, same machine: same result, which is that of `pcreg.register`. Raises InputError
        for clouds that cannot be used.
        """
        check_seed(seed)
        a, b = self._prepared(source, "source"), self._prepared(target, "target")
        with parallel.one_for_blas():
            found = register_at_scales(a, b, self.scales(a, b), seed=seed)
        found = in_given_frames(found, a.frame, b.frame)
        notes = [
            f"{cloud.name or side}: {note}"
            for cloud, side in ((a, "source"), (b, "target"))
            for note in cloud.notes
        ]
        return replace(found, viewpoints=(a.stated, b.stated), notes=(*notes, *found.notes))

    def scales(self, source: PreparedCloud, target: PreparedCloud) -> Iterator[SingleScaleRegistrar]:
        """The scales to try for two clouds, the most promising first; at `voxel` alone if it was given.

        The first suits the sparser cloud; weights that were trained at a voxel size near it are used at that
        one. What the further scales need of the clouds is computed when the iterator gets there.
        """
        if self.voxel is not None:
            yield self.at(self.voxel)
            return
        own = max(source.voxel, target.voxel)
        yield self.at(self.usable([own])[0], own)
        sizes = [own, *further_voxels(own, source.sample, target.sample)]
        for voxel in self.usable(sizes)[1:]:
            yield self.at(voxel, own)

    def at(self, voxel: float, own: float | None = None) -> SingleScaleRegistrar:
        """One scale, of a voxel size in metres, for clouds whose `own` voxel size is that or another."""
        learned = None if self.descriptor == "fpfh" else self._learned(voxel if own is None else own)
        return SingleScaleRegistrar(FPFH(voxel) if learned is None else learned.at(voxel))

    @property
    def fingerprint(self) -> str:
        """A checksum of all weights that may be used; empty for a descriptor that learns nothing."""
        if self.weights is not None:
            return self._learned(0.0).fingerprint
        return "" if self.descriptor == "fpfh" else checksum()

    def for_workers(self) -> "Registrar":
        """A copy for worker processes; unless the device is the CPU it has no network and cannot describe."""
        other = copy(self)
        other._loaded = {
            weights: learned if learned.device == "cpu" else learned.without_network()
            for weights, learned in self._loaded.items()
        }
        return other

    def with_network(self, descriptor: Descriptor) -> Descriptor:
        """The descriptor that this one is a copy of without its network."""
        loaded = {learned.fingerprint: learned for learned in self._loaded.values()}
        return loaded[descriptor.fingerprint].at(descriptor.voxel)

    def _prepared(self, cloud: "Points | PreparedCloud", side: str) -> PreparedCloud:
        return cloud if isinstance(cloud, PreparedCloud) else self.prepare(cloud, name=side)

    def usable(self, sizes: Sequence[float]) -> Sequence[float]:
        """The voxel sizes to describe clouds at that suit `sizes`."""
        return sizes if self.descriptor == "fpfh" else scales(self._learned(sizes[0]).voxel, sizes)

    def _learned(self, own: float) -> "FCGF":
        """The learned descriptor for clouds that suit this voxel size, at that of its training."""
        from pcreg.features.fcgf import FCGF  # PyTorch takes a second to import

        weights = self.weights or weights_for(own)
        if weights not in self._loaded:
            self._loaded[weights] = FCGF.load(weights, self.device)
        return self._loaded[weights]
