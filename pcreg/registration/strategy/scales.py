"""The descriptor of a registrar, and the voxel sizes at which it describes clouds."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcreg.features.base import Descriptor, check_voxel
from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import MIN_OUTDOOR_VOXEL, ROOM_VOXEL, STREET_VOXEL, WEIGHTS
from pcreg.geometry.voxel_size import Sample
from pcreg.models.weights_file import read_weights
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
MIN_OUTDOOR_EXTENT = 10.0  # metres: simulated scans of rooms have up to 7, most of streets 19 and more
MAX_FINER = 3.0  # the usual voxel size over a cloud's own one, for which the usual one is taken
MAX_COARSER = 2.0  # a cloud's own voxel size over that of given weights, for which theirs is taken
STEP = 1.5  # between other voxel sizes: those in training were 0.75 to 1.25 times a cloud's own


class Scales:
    """One descriptor, whose weights are loaded once, at the voxel sizes of a pair."""

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
        is_object = isinstance(descriptor, Descriptor) and not isinstance(descriptor, type)
        self.custom = descriptor if is_object else None
        if self.custom is not None:
            for option, given in {"voxel": voxel, "weights": weights}.items():
                if given is not None:
                    raise InputError(f"{option}={given}: the descriptor is an object; leave this out")
            check_voxel(self.custom.voxel)
            descriptor, voxel, device = self.custom.name, self.custom.voxel, self.custom.device
        elif descriptor not in DESCRIPTORS:
            raise InputError(
                f"descriptor {descriptor} is unknown; use {', '.join(DESCRIPTORS)} or an object as of "
                "pcreg.features.base.Descriptor"
            )
        if descriptor != "fcgf" and weights is not None:
            raise InputError(f"{weights}: {descriptor} takes no weights; leave one of the two out")
        self.descriptor, self.device = descriptor, choose_device(device)
        self.voxel = None if voxel is None else float(voxel)  # one of NumPy is not for JSON
        self.weights = None if weights is None else Path(os.path.expanduser(weights))
        if descriptor == "fpfh" and self.custom is None:
            require("fpfh", "descriptor fpfh")
        self._is_learned = self.custom is None and descriptor == "fcgf"
        if self.weights is not None:  # a wrong name is refused before clouds are read
            _ = self._learned

    def scales(self, source: PreparedCloud, target: PreparedCloud) -> Iterator[SingleScaleRegistrar]:
        """The scales to try for two clouds, most promising first, or the given `voxel`.

        The first suits the sparser cloud, or is that of the weights' training if that is near. Further scales
        are computed when the iterator is asked for them.
        """
        if self.voxel is not None:
            yield self.at(self.voxel)
            return
        clouds = (source, target) if source is not target else (source,)  # whose size is computed once
        own = float(max(parallel.each(lambda cloud: cloud.voxel, clouds, self.device)))
        extent = max(source.extent, target.extent)
        yield self.at(self.voxels(own, extent)[0])
        for voxel in self.voxels(own, extent, further_voxels(own, source.sample, target.sample))[1:]:
            yield self.at(voxel)

    def at(self, voxel: float) -> SingleScaleRegistrar:
        """One scale, of a voxel size in metres."""
        if self.custom is not None:
            return SingleScaleRegistrar(self.custom)
        return SingleScaleRegistrar(self._learned.at(voxel) if self._is_learned else FPFH(voxel, self.device))

    @cached_property
    def _compilation(self) -> "Compilation | None":
        """Start the compilation of a learned descriptor's GPU kernels; InputError for unusable weights."""
        if self.device == "cpu" or not self._is_learned:
            return None
        from pcreg.models.torch_inference import compile_kernels  # PyTorch takes a second to import

        return compile_kernels(read_weights(self.weights or WEIGHTS).architecture, self.device)

    def wait_for_kernels(self) -> None:
        """Wait until the kernels are compiled: each process that shares the GPU would compile them again."""
        if self._compilation is not None:
            self._compilation.wait()

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the weights; empty for FPFH."""
        if self.custom is not None:
            return self.custom.fingerprint
        return read_weights(self.weights or WEIGHTS).fingerprint if self._is_learned else ""

    def voxels(self, own: float, extent: float, further: Sequence[float] = ()) -> Sequence[float]:
        """Voxel sizes at which to describe clouds, by their `own` one, their extent and `further` ones."""
        sizes = [own, *further]
        if not self._is_learned:
            return sizes
        if self.weights is not None:
            return near_training(self._learned.voxel, sizes, MAX_COARSER)
        return near_training(usual_voxel(own, extent), sizes)

    @cached_property
    def _learned(self) -> FCGF:
        """The learned descriptor, at the voxel size of its training."""
        return FCGF.load(self.weights, self.device)


def further_voxels(first: float, source: Sample, target: Sample) -> list[float]:
    """Voxel sizes to try after `first`, metres: twice that, and half of it if both clouds fill such cells."""
    return [2 * first, *([first / 2] if source.fills(first / 2) and target.fills(first / 2) else [])]


def usual_voxel(voxel: float, extent: float) -> float:
    """The voxel size of the training, metres, for clouds of this voxel size and extent in metres."""
    is_outdoor = voxel >= MIN_OUTDOOR_VOXEL and extent >= MIN_OUTDOOR_EXTENT
    return STREET_VOXEL if is_outdoor else ROOM_VOXEL


def near_training(usual: float, sizes: Sequence[float], coarser: float = 1.0) -> list[float]:
    """Voxel sizes to try, best first, from those that suit the clouds and the `usual` one of the training.

    The first is the usual size where the first of `sizes` is down to a third of that, or up to `coarser`
    times as large. Else it is the usual size times the nearest power of 1.5: with few sizes, scans that are
    located in a map share its regions. The others change in proportion.
    """
    ratio = sizes[0] / usual
    is_near = 1 / MAX_FINER <= ratio <= coarser
    first = usual if is_near else usual * STEP ** round(math.log(ratio, STEP))
    return [first * (size / sizes[0]) for size in sizes]
