"""Further looks at an answer that is refused or not quite sure: other scales, and the mirror image."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration import diagnostics
from pcreg.registration.confidence import MIN_CONFIDENCE
from pcreg.registration.prepared import PreparedCloud
from pcreg.registration.preprocess import DescribedCloud
from pcreg.registration.result import Registration
from pcreg.registration.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.timer import Clock

ACCEPT_CONFIDENCE = 0.95  # confidence from which no fallback is tried


def register_at_scales(
    source: PreparedCloud, target: PreparedCloud, scales: Iterable[SingleScaleRegistrar], *, seed: int = 0
) -> Registration:
    """The answer of the first of the scales, if it is sure, or what further looks say.

    A motion of which the first is not quite sure is refused if one of the clouds mirrored fits with more
    confidence. If it has refused, the further scales are tried. Each is one more chance to be wrong: so a
    motion found at another scale is judged at the first as well, by its own matches, and the geometric mean
    of both confidences counts, with that at the other scale taken three times, again unless the mirror image
    fits better. If that is not enough either, the first answer comes back with notes on what may be wrong
    with the clouds. Viewpoints are decided at the first scale.

    Raises InputError, with what may be wrong, if the first scale leaves too few points.
    """
    scales = iter(scales)
    first, clock = next(scales), Clock()
    try:
        a, b = parallel.each(lambda cloud: cloud.at(first), (source, target))
    except OutputError:  # no fault of the clouds
        raise
    except InputError as error:
        if mixed := diagnostics.mixed_units(source.points, target.points):  # then no voxel size suits both
            names = source.name or "source", target.name or "target"
            raise InputError(f"{', '.join(names)}: {mixed[0]}") from error
        words = diagnostics.millimetres(source.points, target.points)
        raise InputError("; ".join([str(error), *words])) from error
    clock.lap("describe")
    found = first.match(a, b, seed=seed)
    seconds = clock.seconds | found.seconds
    if found.registered and found.confidence >= ACCEPT_CONFIDENCE:
        return replace(found, seconds=seconds, notes=diagnostics.after_all(found, a, b))

    def spend(more: dict[str, float]) -> None:
        for step, value in more.items():
            seconds[step] = round(seconds.get(step, 0.0) + value, 4)

    @cache
    def mirrored() -> float:
        clock = Clock()
        confidence = diagnostics.mirrored(first, source, _decided(a), b, seed)
        clock.lap("doubt")
        spend(clock.seconds)
        return confidence

    if found.registered:
        if found.confidence >= mirrored():
            return replace(found, seconds=seconds, notes=diagnostics.after_all(found, a, b))
        return replace(
            found,
            registered=False,
            confidence=1 - mirrored(),
            reason="the clouds fit better if one is mirrored",
            seconds=seconds,
            notes=(diagnostics.MIRRORED,),
        )
    for scale in scales:
        clock = Clock()
        try:
            described = parallel.each(
                lambda pair, scale=scale: pair[0].at(scale, _decided(pair[1])), ((source, a), (target, b))
            )
        except OutputError:
            raise
        except InputError:  # too few points at this scale
            continue
        clock.lap("describe")
        other = scale.match(*described, seed=seed)
        spend(clock.seconds)
        spend(other.seconds)
        if not other.registered:
            continue
        again = first.assess(a, b, other.T_target_source)
        spend(again.seconds)
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
                notes=diagnostics.after_all(finer, a, b),
            )
    notes = diagnostics.duplicates(a, b) + diagnostics.bare(a, b) + diagnostics.unknown_viewpoints(a, b)
    notes += diagnostics.mixed_units(source.points, target.points)
    notes += diagnostics.millimetres(source.points, target.points)
    if mirrored() >= MIN_CONFIDENCE:
        notes.append(diagnostics.MIRRORED)
    return replace(found, seconds=seconds, notes=tuple(notes))


def _decided(cloud: DescribedCloud) -> Viewpoint:
    """Where the sensor was found to stand when the cloud was described."""
    return Viewpoint(cloud.viewpoint, bool(cloud.viewpoint_known))
