"""The one call: two clouds in, as files or arrays, one answer out.

    from pcreg import register
    result = register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = points @ result.T_target_source[:3, :3].T + result.T_target_source[:3, 3]

To register many pairs of few clouds, describe each once: `pcreg.pipeline.Registrar`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
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
from pcreg.shape import Shape
from pcreg.verdict import REGISTERED

if TYPE_CHECKING:
    import torch

Points: TypeAlias = "str | Path | np.ndarray | torch.Tensor"
SURE = 0.95  # confidence from which no second look is taken
METRES = {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": 0.3048, "in": 0.0254}  # by unit


def register(
    source: Points,
    target: Points,
    *,
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: tuple[str, str] = ("m", "m"),
    seed: int = 0,
) -> Registration:
    """Register source to target: each the path of a cloud, or a NumPy array or tensor (N, 3).

    `weights` names a .safetensors file of train.py; without it the descriptor is FPFH. `voxel`, in
    metres, is chosen from the clouds if left out, and then further sizes are tried if the first does
    not register. `units` says in which of m, cm, mm, ft and in source and target are. The result is in
    metres. Same clouds and seed, same machine: same result.

    Raises InputError, one sentence, for clouds, weights or settings that cannot be used.
    """
    a, b = as_cloud(source, "source", units[0]), as_cloud(target, "target", units[1])
    names = tuple(
        side if not isinstance(cloud, str | Path) else str(cloud)
        for side, cloud in (("source", source), ("target", target))
    )
    registrars = [Registrar(each) for each in descriptors(a.points, b.points, names, weights, voxel)]
    with threads.one_for_blas():
        return register_points(a.points, b.points, registrars, seed=seed, names=names)


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
    weights: str | Path | None = None,
    voxel: float | None = None,
) -> list[Descriptor]:
    """The descriptors to try, one per scale, the most promising first; learned ones have a single scale."""
    if voxel is not None and not 0 < voxel < np.inf:
        raise InputError(f"voxel {voxel:g} is no size; use a positive number of metres")
    if weights is not None:
        from pcreg.fcgf import FCGF

        learned = FCGF.load(weights)
        if voxel not in (None, learned.voxel):
            raise InputError(
                f"voxel {voxel:g}: {weights} was trained at {learned.voxel:g} m; leave the voxel out"
            )
        return [learned]
    return [FPFH(size) for size in ([voxel] if voxel else voxels(source, target, names))]


def register_points(
    source: np.ndarray,
    target: np.ndarray,
    registrars: Sequence[Registrar],
    *,
    seed: int = 0,
    names: tuple[str, str] = ("source", "target"),
) -> Registration:
    """Register source (N, 3) to target (M, 3), in metres, by the first registrar or with a second look.

    Raises InputError, with what may be wrong, if no registrar is left points enough.
    """
    clock = Clock()
    try:
        shapes = tuple(
            registrars[0].describe(points, name) for points, name in zip((source, target), names, strict=True)
        )
    except InputError as error:
        if mixed := doubts.mixed_units(source, target):  # then no voxel size suits both
            raise InputError(f"{names[0]}, {names[1]}: {mixed[0]}") from error
        raise InputError("; ".join([str(error), *doubts.millimetres(source, target)])) from error
    clock.lap("describe")
    found = registrars[0].match(*shapes, seed=seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    return second_look(found, shapes, lambda: (source, target), registrars, seed=seed)


def second_look(
    found: Registration,
    shapes: Sequence[Shape],
    clouds: Callable[[], tuple[np.ndarray, np.ndarray]],
    registrars: Sequence[Registrar],
    *,
    seed: int = 0,
) -> Registration:
    """The answer that the first registrar found between `shapes`, if it is sure, or what another look says.

    `clouds` gives the clouds (N, 3), (M, 3) themselves, if they are needed. A motion of which the first is
    not quite sure is refused if one of the clouds mirrored fits with more confidence. If it has refused,
    the further registrars are tried. Each scale is one more chance to be wrong: so a motion found at
    another one is judged at the first as well, by its own matches, and the geometric mean of both
    confidences counts, with that at the other scale taken three times, again unless the mirror image fits
    better. If that is not enough either, the first answer comes back with notes on what may be wrong with
    the clouds.
    """
    if found.registered and found.confidence >= SURE:
        return replace(found, notes=doubts.after_all(found, *shapes))
    source, target = clouds()
    first, seconds = registrars[0], dict(found.seconds)

    def spent(found: Registration) -> Registration:
        for step, value in found.seconds.items():
            seconds[step] = round(seconds.get(step, 0.0) + value, 4)
        return found

    @cache
    def mirrored() -> float:
        clock = Clock()
        confidence = doubts.mirrored(first, source, shapes[1], seed)
        clock.lap("doubt")
        seconds.update(clock.seconds)
        return confidence

    if found.registered and found.confidence >= mirrored():
        return replace(found, seconds=seconds, notes=doubts.after_all(found, *shapes))
    for registrar in [] if found.registered else registrars[1:]:
        try:
            other = spent(registrar.register(source, target, seed=seed))
        except InputError:  # too few points at this scale
            continue
        if not other.registered:
            continue
        again = spent(first.assess(*shapes, other.T_target_source))
        confidence = (other.confidence**3 * again.confidence) ** 0.25
        if confidence >= REGISTERED and confidence >= mirrored():
            finer = min(other, again, key=lambda each: each.voxel)
            reason = f"{other.reason}; at voxel {again.voxel:g} m {again.inliers} matches agree too"
            return replace(
                finer,
                registered=True,
                confidence=confidence,
                reason=reason,
                rival=None,
                seconds=seconds,
                notes=doubts.after_all(finer, *shapes),
            )
    notes = doubts.duplicates(*shapes) + doubts.bare(*shapes)
    notes += doubts.mixed_units(source, target) + doubts.millimetres(source, target)
    if mirrored() >= REGISTERED:
        notes.append(doubts.MIRRORED)
    if found.registered:
        found = replace(
            found,
            registered=False,
            confidence=1 - mirrored(),
            reason="the clouds fit better if one is mirrored",
        )
    return replace(found, seconds=seconds, notes=tuple(notes))
