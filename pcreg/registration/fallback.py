"""The fallback for an answer that is refused or not quite sure: other scales, and the mirror image."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration import diagnostics
from pcreg.registration.confidence import MIN_CONFIDENCE
from pcreg.registration.preprocess import PreparedCloud
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.runtime.errors import InputError
from pcreg.runtime.timer import Clock

ACCEPT_CONFIDENCE = 0.95  # confidence from which no fallback is tried


def register_with_fallback(
    found: Registration,
    shapes: Sequence[PreparedCloud],
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
    if found.registered and found.confidence >= ACCEPT_CONFIDENCE:
        return replace(found, notes=diagnostics.after_all(found, *shapes))
    source, target = clouds()
    first, seconds = registrars[0], dict(found.seconds)
    viewpoints = tuple(Viewpoint(shape.viewpoint, bool(shape.viewpoint_known)) for shape in shapes)

    def spent(found: Registration) -> Registration:
        for step, value in found.seconds.items():
            seconds[step] = round(seconds.get(step, 0.0) + value, 4)
        return found

    @cache
    def mirrored() -> float:
        clock = Clock()
        confidence = diagnostics.mirrored(first, source, viewpoints[0], shapes[1], seed)
        clock.lap("doubt")
        seconds.update(clock.seconds)
        return confidence

    if found.registered:
        if found.confidence >= mirrored():
            return replace(found, seconds=seconds, notes=diagnostics.after_all(found, *shapes))
        return replace(
            found,
            registered=False,
            confidence=1 - mirrored(),
            reason="the clouds fit better if one is mirrored",
            seconds=seconds,
            notes=(diagnostics.MIRRORED,),
        )
    for registrar in registrars[1:]:
        try:
            other = spent(registrar.register(source, target, seed=seed, viewpoints=viewpoints))
        except InputError:  # too few points at this scale
            continue
        if not other.registered:
            continue
        again = spent(first.assess(*shapes, other.T_target_source))
        confidence = (other.confidence**3 * again.confidence) ** 0.25
        if confidence >= MIN_CONFIDENCE and confidence >= mirrored():
            finer = min(other, again, key=lambda each: each.voxel)
            reason = f"{other.reason}; at voxel {again.voxel:g} m {again.inliers} matches agree too"
            return replace(
                finer,
                registered=True,
                confidence=confidence,
                reason=reason,
                alternative=None,
                seconds=seconds,
                notes=diagnostics.after_all(finer, *shapes),
            )
    notes = (
        diagnostics.duplicates(*shapes) + diagnostics.bare(*shapes) + diagnostics.unknown_viewpoints(*shapes)
    )
    notes += diagnostics.mixed_units(source, target) + diagnostics.millimetres(source, target)
    if mirrored() >= MIN_CONFIDENCE:
        notes.append(diagnostics.MIRRORED)
    return replace(found, seconds=seconds, notes=tuple(notes))
