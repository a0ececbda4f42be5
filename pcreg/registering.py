"""The one call: two clouds in, as files or arrays, one answer out.

    from pcreg import register
    result = register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = points @ result.T_target_source[:3, :3].T + result.T_target_source[:3, 3]

To register many pairs of few clouds, describe each once: `pcreg.pipeline.Registrar`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pcreg import doubts, threads
from pcreg.clock import Clock
from pcreg.cloud import Cloud, read_cloud
from pcreg.descriptors import FPFH, Descriptor
from pcreg.errors import InputError
from pcreg.pipeline import Registrar
from pcreg.registration import Registration
from pcreg.scale import voxels
from pcreg.second_look import second_look
from pcreg.shipped import scales, weights_for
from pcreg.viewpoint import ViewpointOption, of_both

if TYPE_CHECKING:
    import torch

Points: TypeAlias = "str | Path | np.ndarray | torch.Tensor"
DESCRIPTORS = ("fcgf", "fpfh")
METRES = {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": 0.3048, "in": 0.0254}  # by unit


def register(
    source: Points,
    target: Points,
    *,
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: tuple[str, str] = ("m", "m"),
    viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    seed: int = 0,
    device: str = "cpu",
) -> Registration:
    """Register source to target: each the path of a cloud, or a NumPy array or tensor (N, 3).

    The `descriptor` is fcgf, learned, or fpfh. `weights` names a .safetensors file of train.py instead of
    the shipped one that suits the clouds. `voxel`, in metres, is chosen from the clouds if left out, and
    then further sizes are tried if the first does not register. `units` says in which of m, cm, mm, ft and
    in source and target are. The `viewpoint` says where the sensor stood, of both clouds or, as a pair, of
    source and target: x, y, z in metres in the frame of the cloud, `sensor` for its origin, `unknown`, or
    `auto`: at the origin if the cloud looks like a view from there, else unknown. Where it is unknown it is
    estimated, and the answer does not depend on the origin. The result is in metres. Same clouds and seed,
    same machine: same result. The `device` is that of the learned descriptor, cpu, cuda or auto: the CPU describes two clouds in less
    time than a GPU takes to start.

    Raises InputError, one sentence, for clouds, weights or settings that cannot be used.
    """
    viewpoints = of_both(viewpoint)
    a, b = as_cloud(source, "source", units[0]), as_cloud(target, "target", units[1])
    names = tuple(
        side if not isinstance(cloud, str | Path) else str(cloud)
        for side, cloud in (("source", source), ("target", target))
    )
    chosen = descriptors(a.points, b.points, names, descriptor, weights, voxel, device)
    registrars = [Registrar(each) for each in chosen]
    with threads.one_for_blas():
        return register_points(a.points, b.points, registrars, seed=seed, names=names, viewpoints=viewpoints)


def as_cloud(cloud: Points, name: str, unit: str = "m") -> Cloud:
    """The cloud in metres; rows of an array that are not finite are dropped, as those of a file are."""
    if unit not in METRES:
        raise InputError(f"{name}: unit {unit} is not known; use one of {' '.join(METRES)}")
    if isinstance(cloud, str | Path):
        read = read_cloud(cloud)
    else:
        if hasattr(cloud, "detach"):
            cloud = cloud.detach().cpu().numpy()
        rows = np.asarray(cloud)
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "fiu":
            turned = "it looks transposed; " if rows.ndim == 2 and len(rows) == 3 else ""
            raise InputError(
                f"{name}: shape {rows.shape} of {rows.dtype}; {turned}pass rows x y z, (N, 3) numbers"
            )
        rows = rows.astype(np.float64)
        finite = np.isfinite(rows).all(1)
        read = Cloud(rows[finite], int(len(rows) - finite.sum()))
    return read if unit == "m" else replace(read, points=read.points * METRES[unit])


def descriptors(
    source: np.ndarray,
    target: np.ndarray,
    names: tuple[str, str],
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    device: str = "cpu",
) -> list[Descriptor]:
    """The descriptors to try, one per scale, the most promising first; with `voxel` at that one alone."""
    if voxel is not None and not 0 < voxel < np.inf:
        raise InputError(f"voxel {voxel:g} is no size; use a positive number of metres")
    sizes = [voxel] if voxel else voxels(source, target, names)
    return at_scales(descriptor, weights, sizes, fixed=voxel is not None, device=device)


def at_scales(
    descriptor: str, weights: str | Path | None, sizes: Sequence[float], *, fixed: bool, device: str = "cpu"
) -> list[Descriptor]:
    """Descriptors for clouds that suit the voxel `sizes`, metres; `fixed`: just these are wanted."""
    if descriptor not in DESCRIPTORS:
        raise InputError(f"descriptor {descriptor} is not known; use {' or '.join(DESCRIPTORS)}")
    if descriptor == "fpfh":
        if weights is not None:
            raise InputError(f"{weights}: fpfh takes no weights; leave one of the two out")
        return [FPFH(size) for size in sizes]
    from pcreg.fcgf import FCGF  # PyTorch takes a second to import

    learned = FCGF.load(weights or weights_for(sizes[0]), device)
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
    """Register source (N, 3) to target (M, 3), in metres, by the first registrar or with a second look.

    The `viewpoints` of both are as in `register`. Raises InputError, with what may be wrong, if no registrar
    is left points enough.
    """
    clock = Clock()
    try:
        pair = zip((source, target), names, viewpoints, strict=True)
        shapes = threads.each(lambda each: registrars[0].describe(*each), pair)
    except InputError as error:
        if mixed := doubts.mixed_units(source, target):  # then no voxel size suits both
            raise InputError(f"{names[0]}, {names[1]}: {mixed[0]}") from error
        raise InputError("; ".join([str(error), *doubts.millimetres(source, target)])) from error
    clock.lap("describe")
    found = registrars[0].match(*shapes, seed=seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    return second_look(found, shapes, lambda: (source, target), registrars, seed=seed)
