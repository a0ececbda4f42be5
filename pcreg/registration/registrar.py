"""Registration of many pairs of clouds, each of which is prepared once.

registrar = Registrar(device="cuda")
clouds = [registrar.prepare(points) for points in scans]
result = registrar.register(clouds[0], clouds[1])
"""

import os
from dataclasses import replace
from functools import lru_cache
from numbers import Real
from pathlib import Path
from socket import gethostname
from typing import Any

from numpy.typing import ArrayLike

from pcreg.geometry.se3 import inverse, mean_displacement, rigid_motion, rotation_error
from pcreg.registration.clouds.inputs import Points, ViewpointOption, as_cloud, check_seed, check_viewpoint
from pcreg.registration.clouds.local_frame import between_local
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.result import Registration
from pcreg.registration.strategy.diagnostics import out_of_reach
from pcreg.registration.strategy.fallback import answer_at_scales
from pcreg.registration.strategy.localization import locate
from pcreg.registration.strategy.prepared_map import PreparedMap, map_file
from pcreg.registration.strategy.scales import Scales
from pcreg.registration.strategy.similarity import register_similarity
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError


class Registrar(Scales):
    """Registration of pairs by one descriptor, whose weights are loaded once.

    Args:
        descriptor: `fcgf`, which is learned, `fpfh`, or an object with the interface of
            `pcreg.features.base.Descriptor`, which is used at its own voxel size.
        weights: A .safetensors file of `pcreg train`; by default the shipped one.
        voxel: Metres; by default chosen from the clouds, with further sizes if the first does not register.
        device: `cpu`, `cuda`, `cuda:N` or `auto`.

    Raises:
        InputError: A setting cannot be used, the device is missing, or the weights cannot be read.
    """

    def prepare(
        self,
        cloud: Points,
        *,
        name: str | None = None,
        units: str = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption = "auto",
        is_map: bool = False,
    ) -> PreparedCloud:
        """Prepare a cloud for any number of registrations.

        Args:
            cloud: A path, an array or tensor (N, 3), or a point cloud of Open3D.
            name: Name of the cloud in messages, unless it is a file.
            units: Units of the coordinates: m, cm, mm, ft or in.
            columns: Number of float32 values in a row of a .bin file; by default estimated from its content.
            viewpoint: Sensor position of this cloud, as in `pcreg.register`.
            is_map: True for a target many times larger than its sources, which are searched for in regions of
                it: a cloud, or a folder of `pcreg map`, in metres, from which the largest map is taken.

        Returns:
            The prepared cloud or map. It computes and keeps descriptions when a registration needs them.

        Raises:
            InputError: The cloud or an option cannot be used.
        """
        option = check_viewpoint(viewpoint)
        if is_map and isinstance(cloud, str | Path):
            units = "m" if os.path.isdir(os.path.expanduser(cloud)) else units
            cloud = map_file(cloud)
        name = str(cloud) if isinstance(cloud, str | Path) else name
        _ = self._compilation  # kernels are compiled while the cloud is read
        read = as_cloud(cloud, name or "cloud", units, columns)
        prepared = (PreparedMap if is_map else PreparedCloud)(read, option, name, device=self.device)
        _ = prepared.stated  # raises InputError for viewpoints that do not fit the cloud
        return prepared

    def prepare_both(
        self,
        source: Points,
        target: Points,
        *,
        units: str | tuple[str, str] = "m",
        columns: int | None = None,
        viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    ) -> tuple[PreparedCloud, PreparedCloud]:
        """Prepare two clouds at the same time, as by `prepare`.

        Units and viewpoint hold for both clouds or, as a pair, for one each.
        """

        def prepare(cloud: Points, name: str, unit: str, place: ViewpointOption) -> PreparedCloud:
            return self.prepare(cloud, name=name, units=unit, columns=columns, viewpoint=place)

        sides = zip((source, target), ("source", "target"), _of_each(units), _of_each(viewpoint), strict=True)
        a, b = parallel.each(lambda side: prepare(*side), sides)
        return a, b

    def register(
        self,
        source: "Points | PreparedCloud",
        target: "Points | PreparedCloud",
        *,
        seed: int = 0,
        prior: Prior = ANY,
        scale: bool = False,
        thorough: bool = True,
    ) -> Registration:
        """Register source to target, with the result of `pcreg.register`.

        Args:
            source: A prepared cloud, or a cloud in metres as `prepare` takes it.
            target: The same, or a prepared map, in which the source is searched for at one voxel size.
            seed: Seed of random samples, 0 or more.
            prior: Limits on the transform: others are not searched for, and rejected if found by refinement.
            scale: True for a source without metric scale: `T_target_source` enlarges it by
                `Registration.scale`. The transform is rejected if the scale cannot be determined.
            thorough: After a rejection try further voxel sizes, and note possible faults of the clouds, such
                as a mirrored one. This takes a third of the time of a rejection.

        Returns:
            The transform found and the verdict on it.

        Raises:
            InputError: A cloud or an option cannot be used.
        """
        check_seed(seed)
        if not isinstance(prior, Prior):
            usage = "pcreg.Prior(gravity=True), or pcreg.Prior(near=T, within=(metres, degrees))"
            raise InputError(f"prior is of type {type(prior).__name__}; use {usage}")
        if not isinstance(scale, bool):
            raise InputError(f"scale={scale!r}: use True to find it; to set it, multiply the source by it")
        if scale and (isinstance(target, PreparedMap) or prior.near is not None):
            raise InputError("scale=True is for two clouds, without prior.near; leave one of the two out")
        if isinstance(target, PreparedMap):
            a = self._prepared(source, "source")
            with parallel.one_for_blas():
                found, region = locate(a, target, next(self.scales(a, a)), seed=seed, prior=prior)
            return found.of_clouds(a, region)
        a, b = self._both_prepared(source, target)
        with parallel.one_for_blas():
            if scale:
                return register_similarity(a, b, self.scales, seed=seed, prior=prior, thorough=thorough)
            found = answer_at_scales(a, b, self.scales(a, b), seed=seed, prior=prior, thorough=thorough)
        return found.of_clouds(a, b)

    def verify(
        self,
        source: "Points | PreparedCloud",
        target: "Points | PreparedCloud",
        T_target_source: ArrayLike,
        *,
        seed: int = 0,
    ) -> Registration:
        """Judge a transform that comes from elsewhere, such as ICP or a SLAM loop closure.

        The transform is refined first. Further scales, the mirror test and the turns of a symmetric place are
        tried as in `register`. Other transforms, such as into the next of several equal rooms, are not tried.

        Args:
            source: A prepared cloud, or a cloud in metres as `prepare` takes it.
            target: The same.
            T_target_source: A rigid transform (4, 4), translation in metres; the identity for aligned clouds.
            seed: Seed of the mirror test, 0 or more.

        Returns:
            The verdict. Refinement may correct the transform by up to 1.5 voxels, on average over the source:
                then `T_target_source` and the confidence are those of the refined transform, and a note
                states the correction. After a larger correction the given transform is rejected, `evidence`
                is about the refined one, and if that fits, it is the `alternative`. A note says if the
                inverse of a rejected transform fits.

        Raises:
            InputError: A cloud cannot be used, or the matrix is not rigid.
        """
        check_seed(seed)
        given = rigid_motion(T_target_source, "T_target_source")
        a, b = self._both_prepared(source, target)
        T, opposite = (between_local(each, a.frame, b.frame) for each in (given, inverse(given)))
        with parallel.one_for_blas():
            found = answer_at_scales(a, b, self.scales(a, b), T, seed=seed)
            if not found.registered and found.alternative is None:
                first = next(self.scales(a, b))
                described = a.at(first.descriptor), b.at(first.descriptor)
                if first.verify(*described, opposite, first.match_distance).registered:
                    note = "the inverse of the given transform fits: give that, or exchange source and target"
                    found = replace(found, notes=(*found.notes, note))
                found = replace(found, notes=(*found.notes, *out_of_reach(a.cloud.box, b.cloud.box, given)))
        if found.registered:
            metres = mean_displacement(a.points, T, found.T_target_source)
            degrees = rotation_error(found.T_target_source, T)
            note = f"refinement corrected the given transform by {metres:.3f} m and {degrees:.2f} degrees"
            found = replace(found, notes=(*found.notes, note))
        return found.of_clouds(a, b)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle settings in place of weights on a GPU: another process loads its own copy."""
        if self.device == "cpu" or self.custom is not None:
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
        if prepared.device != self.device:
            raise InputError(f"{side}: prepared for {prepared.device}, not {self.device}; prepare it again")
        return prepared


def _of_each(option: Any) -> tuple[Any, Any]:
    """The options of source and target, from a pair or one for both; two numbers are not a pair."""
    is_pair = isinstance(option, list | tuple) and len(option) == 2 and not isinstance(option[0], Real)
    return tuple(option) if is_pair else (option, option)


@lru_cache(maxsize=1)
def _of_process(
    descriptor: str, weights: Path | None, voxel: float | None, device: str, _fingerprint: str
) -> Registrar:
    """The registrar of this process for these settings and weights, which are loaded once."""
    try:
        return Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    except InputError as error:
        raise InputError(f"a worker on {gethostname()}: {error}") from error
