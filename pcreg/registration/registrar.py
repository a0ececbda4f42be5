"""Registration of one pair, or of many pairs of few clouds, each of which is prepared once.

registrar = Registrar(device="cuda")
clouds = [registrar.prepare(points) for points in scans]
result = registrar.register(clouds[0], clouds[1])

Long, as it holds what a caller sees: every argument with its words, and overloads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pcreg.features.fcgf import FCGF, compile_for
from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import Size, checksum, scales, weights_for
from pcreg.geometry.se3 import mean_displacement, rigid_motion, rotation_error
from pcreg.geometry.voxel_size import further_voxels
from pcreg.io.cloud import expanded
from pcreg.registration.clouds.inputs import (
    Points,
    ViewpointOption,
    as_cloud,
    check_seed,
    check_settings,
    check_viewpoint,
)
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.result import Registration
from pcreg.registration.strategy.fallback import answer_at_scales
from pcreg.registration.strategy.localization import locate
from pcreg.registration.strategy.prepared_map import PreparedMap
from pcreg.registration.strategy.similarity import in_source_units, register_similarity
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.cached_property import cached_property
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Compilation

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

        Raises InputError for settings that cannot be used, a device that is not there, and `weights` that
        cannot be read.
        """
        check_settings(voxel, weights, device)
        if descriptor not in DESCRIPTORS:
            raise InputError(f"descriptor {descriptor} is not known; use {' or '.join(DESCRIPTORS)}")
        if descriptor == "fpfh" and weights is not None:
            raise InputError(f"{weights}: fpfh takes no weights; leave one of the two out")
        self.descriptor, self.voxel, self.device = descriptor, voxel, choose_device(device)
        self.weights = None if weights is None else expanded(weights)
        self._loaded: dict[Path, FCGF] = {}
        if self.weights is not None:  # a wrong name is refused before clouds are read
            self._learned(Size(0.0))

    @overload
    def prepare(
        self,
        cloud: Points,
        *,
        name: str | None = None,
        units: str = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption = "auto",
        is_map: Literal[False] = False,
    ) -> PreparedCloud: ...

    @overload
    def prepare(
        self,
        cloud: Points,
        *,
        name: str | None = None,
        units: str = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption = "auto",
        is_map: Literal[True],
    ) -> PreparedMap: ...

    def prepare(
        self,
        cloud: Points,
        *,
        name: str | None = None,
        units: str = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption = "auto",
        is_map: bool = False,
    ) -> PreparedCloud | PreparedMap:
        """The cloud, a path, an array or tensor (N, 3), or of Open3D, for any number of registrations.

        `units`, `columns` and `viewpoint` are as in `pcreg.register`, of this cloud. Messages call a file by
        its path and another cloud by `name`. With `is_map` it is a target many times larger than the sources,
        of which regions are described for the first source. Raises InputError for a cloud that cannot be
        used.
        """
        option = check_viewpoint(viewpoint)
        name = str(cloud) if isinstance(cloud, str | Path) else name
        _ = self._compilation  # before the cloud is read: kernels are compiled meanwhile
        read = as_cloud(cloud, name or "cloud", units, columns)
        prepared = PreparedCloud(read, option, name, device=self.device)
        _ = prepared.stated  # viewpoints that do not fit the cloud are refused here
        return PreparedMap(prepared) if is_map else prepared

    def register(
        self,
        source: "Points | PreparedCloud",
        target: "Points | PreparedCloud | PreparedMap",
        *,
        seed: int = 0,
        prior: Prior = ANY,
        scale: bool = False,
    ) -> Registration:
        """Register source to target, each prepared or as `prepare` takes it, in metres.

        With `scale` the source is in a unit that is not known, such as that of structure from motion, and
        `T_target_source` enlarges it by `Registration.scale`; refused where that cannot be told.
        In a map that was prepared as one the source is looked for at its own scale, or `voxel`, alone.
        Motions outside of the `prior` are not searched for, and a refined one that leaves it is refused.
        Same clouds and seed, same machine: same result, which is that of `pcreg.register`. Raises InputError
        for clouds that cannot be used.
        """
        check_seed(seed)
        if scale and (isinstance(target, PreparedMap) or prior.near is not None):
            raise InputError("scale=True is for two clouds, without prior.near; leave one of the two out")
        if isinstance(target, PreparedMap):
            a = self._prepared(source, "source")
            with parallel.one_for_blas():
                found, region = locate(a, target, next(self.scales(a, a)), seed=seed, prior=prior)
            return _as_given(found, a, region)
        a, b = self._both_prepared(source, target)
        with parallel.one_for_blas():
            if not scale:
                return _as_given(self._answer(a, b, seed, prior), a, b)
            found, enlarged = register_similarity(
                a,
                b,
                lambda a: replace(next(self.scales(a, b)), prior=prior),
                lambda a: self._answer(a, b, seed, prior),
            )
        return in_source_units(_as_given(found, enlarged, b))

    def _answer(self, a: PreparedCloud, b: PreparedCloud, seed: int, prior: Prior) -> Registration:
        """The answer for two clouds, between their local frames."""
        prior = prior.between(a.frame.corner, b.frame.corner)
        scales = (replace(scale, prior=prior) for scale in self.scales(a, b))
        return answer_at_scales(
            a, b, scales, lambda scale, *clouds: scale.match(*clouds, seed=seed), seed=seed
        )

    def verify(
        self,
        source: "Points | PreparedCloud",
        target: "Points | PreparedCloud",
        T_target_source: ArrayLike,
        *,
        seed: int = 0,
    ) -> Registration:
        """The verdict on a motion (4, 4) that comes from elsewhere, such as ICP or a SLAM loop closure.

        The clouds are as for `register`, whatever their units the translation is in metres, and the identity
        says that the clouds are aligned. As the verdict is on refined motions, this one is refined first. Up
        to 1.5 voxels, on average over the source, count as its inaccuracy: then `T_target_source` of the
        result is the refined motion, the confidence is in that one, and a note states the correction. Beyond,
        the motion is refused; if the clouds fit there, the refined one is the `alternative`. The further
        scales and the mirror test are those of `register`, with `seed` for the latter.

        No better motion is searched for: that the scene repeats itself is not noticed here. Raises InputError
        for clouds that cannot be used and for a matrix that is not rigid.
        """
        check_seed(seed)
        T = rigid_motion(T_target_source, "T_target_source")
        a, b = self._both_prepared(source, target)
        T = b.frame.T_local_given @ T @ a.frame.T_given_local
        scales = self.scales(a, b)
        first = next(scales)
        with parallel.one_for_blas():
            found = answer_at_scales(
                a,
                b,
                chain([first], scales),
                lambda scale, *clouds: scale.verify(*clouds, T, first.match_distance),
                seed=seed,
            )
        if found.registered:
            found = replace(found, notes=(*found.notes, _correction(a.points, T, found.T_target_source)))
        return _as_given(found, a, b)

    def scales(self, source: PreparedCloud, target: PreparedCloud) -> Iterator[SingleScaleRegistrar]:
        """The scales to try for two clouds, the most promising first; at `voxel` alone if it was given.

        The first suits the sparser cloud; weights that were trained at a voxel size near it are used at that
        one. What the further scales need of the clouds is computed when the iterator gets there.
        """
        if self.voxel is not None:
            yield self.at(self.voxel)
            return
        own = float(max(parallel.each_on(self.device, lambda cloud: cloud.voxel, (source, target))))
        size = Size(own, max(source.extent, target.extent))
        yield self.at(self.usable(size)[0], size)
        for voxel in self.usable(size, further_voxels(own, source.sample, target.sample))[1:]:
            yield self.at(voxel, size)

    def at(self, voxel: float, size: Size | None = None) -> SingleScaleRegistrar:
        """One scale, of a voxel size in metres, for clouds of this size; by default that suits the scale."""
        learned = None if self.descriptor == "fpfh" else self._learned(size or Size(voxel))
        descriptor = learned.at(voxel) if learned else FPFH(voxel, device=self.device)
        return SingleScaleRegistrar(descriptor)

    @cached_property
    def _compilation(self) -> "Compilation | None":
        """Kernels of the descriptors, which begin to be compiled for a GPU."""
        has_kernels = self.device != "cpu" and self.descriptor == "fcgf"
        return compile_for(self.weights, self.device) if has_kernels else None

    def wait_for_kernels(self) -> None:
        """Wait until the kernels are compiled: each process that shares the GPU would compile them again."""
        if self._compilation is not None:
            self._compilation.wait()

    @property
    def fingerprint(self) -> str:
        """A checksum of all weights that may be used; empty for a descriptor that learns nothing."""
        if self.weights is not None:
            return self._learned(Size(0.0)).fingerprint
        return "" if self.descriptor == "fpfh" else checksum()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What is on a GPU stays in its process: another one loads the weights by itself."""
        if self.device == "cpu":
            return super().__reduce_ex__(protocol)
        given = "" if self.weights is None else self.fingerprint
        return _of_process, (self.descriptor, self.weights, self.voxel, self.device, given)

    def _both_prepared(
        self, source: "Points | PreparedCloud", target: "Points | PreparedCloud"
    ) -> list[PreparedCloud]:
        sides = (source, "source"), (target, "target")
        return parallel.each(lambda given: self._prepared(*given), sides)

    def _prepared(self, cloud: "Points | PreparedCloud", side: str) -> PreparedCloud:
        prepared = cloud if isinstance(cloud, PreparedCloud) else self.prepare(cloud, name=side)
        prepared.load()  # all that waits for memory now, where each cloud may have a thread
        return prepared

    def usable(self, size: Size, further: Sequence[float] = ()) -> Sequence[float]:
        """The voxel sizes to describe clouds of this size at: its own, or near it, and `further` ones."""
        sizes = [size.voxel, *further]
        return sizes if self.descriptor == "fpfh" else scales(self._learned(size).voxel, sizes)

    def _learned(self, size: Size) -> FCGF:
        """The learned descriptor for clouds of this size, at the voxel size of its training."""
        weights = self.weights or weights_for(*size)
        if weights not in self._loaded:
            self._loaded[weights] = FCGF.load(weights, self.device)
        return self._loaded[weights]


@lru_cache(maxsize=1)
def _of_process(
    descriptor: str, weights: Path | None, voxel: float | None, device: str, _fingerprint: str
) -> Registrar:
    """The one of this process for all work with these settings and weights, which it loads once."""
    try:
        return Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    except InputError as error:
        raise InputError(f"a worker on {gethostname()}: {error}") from error


def _as_given(found: Registration, source: PreparedCloud, target: PreparedCloud) -> Registration:
    """What was found between local frames, in the given frames, with what is known of the clouds."""
    notes = [
        f"{cloud.name or side}: {note}"
        for cloud, side in ((source, "source"), (target, "target"))
        for note in cloud.notes
    ]
    found = found.in_given_frames(source.frame, target.frame)
    return replace(found, viewpoints=(source.stated, target.stated), notes=(*notes, *found.notes))


def _correction(points: NDArray[np.float64], given: NDArray[np.float64], refined: NDArray[np.float64]) -> str:
    """What refinement changed, in words."""
    metres, degrees = mean_displacement(points, given, refined), rotation_error(refined, given)
    return f"refinement corrected the given motion by {metres:.3f} m on average and {degrees:.2f} degrees"
