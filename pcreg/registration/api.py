"""The one call: two clouds in, as files or arrays, one answer out.

    from pcreg import register
    result = register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = result.transform(points)

To register many pairs of few clouds, describe each once: `pcreg.registration.registrar.Registrar`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcreg.features.base import Descriptor
from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import scales, weights_for
from pcreg.geometry.viewpoint import ViewpointOption, of_both
from pcreg.geometry.voxel_size import voxels
from pcreg.io.cloud import expanded
from pcreg.registration import diagnostics
from pcreg.registration.fallback import register_with_fallback
from pcreg.registration.inputs import Points, as_cloud, both_units, check_settings
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.timer import Clock

if TYPE_CHECKING:
    from pcreg.features.fcgf import FCGF

DESCRIPTORS = ("fcgf", "fpfh")


def register(
    source: Points,
    target: Points,
    *,
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: str | tuple[str, str] = "m",
    columns: int | None = None,
    viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    seed: int = 0,
    device: str = "cpu",
) -> Registration:
    """Register source to target, each a path, an array or tensor (N, 3), or a point cloud of Open3D.

    Columns of an array after the third, up to the 32nd, are ignored. In paths `~` is the home folder.

    The `descriptor` is fcgf, learned, or fpfh. `weights` names the .safetensors file of a training instead of
    the shipped one that suits the clouds. `voxel`, in metres, is chosen from the clouds if left out, and
    then further sizes are tried if the first does not register. `units` says in which of m, cm, mm, ft and
    in the clouds are, both or each. `columns` is how many float32 make a row of a .bin file, if that cannot
    be told. The `viewpoint` says where the sensor stood, of both clouds or, as a pair, of each: x, y, z in
    metres in the frame of the cloud, `sensor` for its origin, `unknown`, or `auto`: at the origin if the
    cloud looks like a view from there, else unknown. Where it is unknown it is estimated, and the answer
    does not depend on the origin. Repeated rows of zeros and a few points far from all others are left out,
    which `notes` of the result say. The result is in metres. Same clouds and seed, same machine: same result.
    The `device` is that of the learned descriptor, cpu, cuda or auto: the CPU describes two clouds in less
    time than a GPU takes to start.

    Raises InputError, one sentence, for clouds, weights or settings that cannot be used.
    """
    check_settings(seed, voxel, weights, device)
    viewpoints, learned = of_both(viewpoint), load(descriptor, weights, device)
    clouds = [
        as_cloud(cloud, side, unit, columns)
        for side, cloud, unit in zip(("source", "target"), (source, target), both_units(units), strict=True)
    ]
    a, b = (cloud.points for cloud in clouds)
    names = tuple(
        side if not isinstance(cloud, str | Path) else str(cloud)
        for side, cloud in (("source", source), ("target", target))
    )
    chosen = descriptors(a, b, names, descriptor, learned, voxel, device)
    registrars = [Registrar(each) for each in chosen]
    with parallel.one_for_blas():
        found = register_points(a, b, registrars, seed=seed, names=names, viewpoints=viewpoints)
    return replace(found, notes=(*clouds[0].notes, *clouds[1].notes, *found.notes))


def load(descriptor: str, weights: str | Path | None, device: str = "cpu") -> "FCGF | None":
    """The learned descriptor of a file of weights; None without one: the clouds choose a shipped one.

    Raises InputError for a descriptor that is not known, one that takes no weights, and an unusable file.
    """
    if descriptor not in DESCRIPTORS:
        raise InputError(f"descriptor {descriptor} is not known; use {' or '.join(DESCRIPTORS)}")
    if weights is None:
        return None
    if descriptor == "fpfh":
        raise InputError(f"{weights}: fpfh takes no weights; leave one of the two out")
    from pcreg.features.fcgf import FCGF  # PyTorch takes a second to import

    return FCGF.load(expanded(weights), device)


def descriptors(
    source: np.ndarray,
    target: np.ndarray,
    names: tuple[str, str],
    descriptor: str = "fcgf",
    learned: "FCGF | None" = None,
    voxel: float | None = None,
    device: str = "cpu",
) -> list[Descriptor]:
    """The descriptors to try, one per scale, the most promising first; with `voxel` at that one alone."""
    sizes = [voxel] if voxel else voxels(source, target, names)
    return at_scales(descriptor, learned, sizes, fixed=voxel is not None, device=device)


def at_scales(
    descriptor: str, learned: "FCGF | None", sizes: Sequence[float], *, fixed: bool, device: str = "cpu"
) -> list[Descriptor]:
    """Descriptors for clouds that suit the voxel `sizes`, metres; `fixed`: just these are wanted."""
    if descriptor == "fpfh":
        return [FPFH(size) for size in sizes]
    learned = learned or load(descriptor, weights_for(sizes[0]), device)
    return [learned.at(size) for size in (sizes if fixed else scales(learned.voxel, sizes))]


def register_points(
    source: np.ndarray,
    target: np.ndarray,
    registrars: Sequence[Registrar],
    *,
    seed: int = 0,
    names: tuple[str, str] = ("source", "target"),
    viewpoints: tuple[ViewpointOption, ViewpointOption] = ("auto", "auto"),
) -> Registration:
    """Register source (N, 3) to target (M, 3), in metres, by the first registrar or with the fallback.

    The `viewpoints` of both are as in `register`. Raises InputError, with what may be wrong, if no registrar
    is left points enough.
    """
    clock = Clock()
    try:
        pair = zip((source, target), names, viewpoints, strict=True)
        shapes = parallel.each(lambda each: registrars[0].describe(*each), pair)
    except InputError as error:
        if mixed := diagnostics.mixed_units(source, target):  # then no voxel size suits both
            raise InputError(f"{names[0]}, {names[1]}: {mixed[0]}") from error
        raise InputError("; ".join([str(error), *diagnostics.millimetres(source, target)])) from error
    clock.lap("describe")
    found = registrars[0].match(*shapes, seed=seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    return register_with_fallback(found, shapes, lambda: (source, target), registrars, seed=seed)
