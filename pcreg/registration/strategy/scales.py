"""The descriptor of a registrar, and the voxel sizes at which it describes clouds."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcreg.features.base import Descriptor
from pcreg.features.fcgf import FCGF, compile_for
from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import Size, checksum, scales, weights_for
from pcreg.geometry.voxel_size import further_voxels
from pcreg.io.cloud import expanded
from pcreg.registration.clouds.inputs import check_settings
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import cached_property, parallel
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError
from pcreg.runtime.extras import require

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Compilation

DESCRIPTORS = ("fcgf", "fpfh")


class Scales:
    """One descriptor, whose weights are loaded once, when first needed, at the voxel sizes of a pair."""

    def __init__(
        self,
        *,
        descriptor: str | Descriptor = "fcgf",
        weights: str | Path | None = None,
        voxel: float | None = None,
        device: str = "cpu",
    ) -> None:
        """Check the settings; raises InputError as `pcreg.Registrar`."""
        check_settings(voxel, weights, device)
        self.own = descriptor if isinstance(descriptor, Descriptor) else None
        if self.own is None and descriptor not in DESCRIPTORS:
            raise InputError(
                f"descriptor {descriptor} is unknown; use {', '.join(DESCRIPTORS)} or an object as of "
                "pcreg.features.base.Descriptor"
            )
        if self.own is not None:
            descriptor, voxel, device = self.own.name, self.own.voxel, self.own.device
        if descriptor != "fcgf" and weights is not None:
            raise InputError(f"{weights}: {descriptor} takes no weights; leave one of the two out")
        self.descriptor, self.voxel, self.device = descriptor, voxel, choose_device(device)
        self.weights = None if weights is None else expanded(weights)
        if descriptor == "fpfh" and self.own is None:
            require("fpfh", "descriptor fpfh")
        self._loaded: dict[Path, FCGF] = {}
        if self.weights is not None:  # a wrong name is refused before clouds are read
            self._learned(Size(0.0))

    def scales(self, source: PreparedCloud, target: PreparedCloud) -> Iterator[SingleScaleRegistrar]:
        """The scales to try for two clouds, the most promising first; at `voxel` alone if it was given.

        The first suits the sparser cloud; weights that were trained at a voxel size near it are used at that
        one. The further scales are computed when the iterator gets there.
        """
        if self.voxel is not None:
            yield self.at(self.voxel)
            return
        own = float(max(parallel.each(lambda cloud: cloud.voxel, (source, target), self.device)))
        size = Size(own, max(source.extent, target.extent))
        yield self.at(self.usable(size)[0], size)
        for voxel in self.usable(size, further_voxels(own, source.sample, target.sample))[1:]:
            yield self.at(voxel, size)

    def at(self, voxel: float, size: Size | None = None) -> SingleScaleRegistrar:
        """One scale, of a voxel size in metres, for clouds of this size; by default that suits the scale."""
        if self.own is not None:
            return SingleScaleRegistrar(self.own)
        learned = None if self.descriptor == "fpfh" else self._learned(size or Size(voxel))
        descriptor = learned.at(voxel) if learned else FPFH(voxel, device=self.device)
        return SingleScaleRegistrar(descriptor)

    @cached_property
    def _compilation(self) -> "Compilation | None":
        """Kernels of the descriptors, which begin to be compiled for a GPU."""
        has_kernels = self.device != "cpu" and self.descriptor == "fcgf" and self.own is None
        return compile_for(self.weights, self.device) if has_kernels else None

    def wait_for_kernels(self) -> None:
        """Wait until the kernels are compiled: each process that shares the GPU would compile them again."""
        if self._compilation is not None:
            self._compilation.wait()

    @property
    def fingerprint(self) -> str:
        """A checksum of all weights that may be used; empty for a descriptor that learns nothing."""
        if self.own is not None:
            return self.own.fingerprint
        if self.weights is not None:
            return self._learned(Size(0.0)).fingerprint
        return "" if self.descriptor == "fpfh" else checksum()

    def usable(self, size: Size, further: Sequence[float] = ()) -> Sequence[float]:
        """The voxel sizes to describe clouds of this size at: its own, or near it, and `further` ones."""
        sizes = [size.voxel, *further]
        return (
            sizes
            if self.own is not None or self.descriptor == "fpfh"
            else scales(self._learned(size).voxel, sizes)
        )

    def _learned(self, size: Size) -> FCGF:
        """The learned descriptor for clouds of this size, at the voxel size of its training."""
        weights = self.weights or weights_for(*size)
        if weights not in self._loaded:
            self._loaded[weights] = FCGF.load(weights, self.device)
        return self._loaded[weights]
