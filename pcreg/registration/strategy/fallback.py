"""Further tries if the first answer is no or not confident: other points, other scales, the mirror image."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import DescribedCloud, mirrored
from pcreg.registration.judge.confidence import ACCEPT_CONFIDENCE, MIN_CONFIDENCE
from pcreg.registration.matching.prior import ANY
from pcreg.registration.result import Registration
from pcreg.registration.strategy import diagnostics
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.progress import Clock

# Confidence of a refusal below which another try cannot help: of 700 simulated pairs refused with less, by
# learned descriptors, none is registered at another voxel size (of 544 refused with more, 20), and of 644 one
# by a second sample of the points (of 281, 16)
MIN_RETRIED_CONFIDENCE = 0.03
# The answer at one scale for source and target: by a search (`match`), or on a given motion (`verify`)
Answer = Callable[[SingleScaleRegistrar, DescribedCloud, DescribedCloud], Registration]


def answer_at_scales(
    source: PreparedCloud,
    target: PreparedCloud,
    scales: Iterable[SingleScaleRegistrar],
    answer: Answer,
    *,
    seed: int = 0,
    diagnose: bool = True,
) -> Registration:
    """The answer at the first scale if its confidence is 0.95 or more, else that of the fallback.

    If the first scale refuses, it answers again by features averaged over two samples of each cloud, unless
    the confidence is so low that they cannot help, and the likelier answer counts. A registration with less
    than 0.95 is refused if the mirrored source fits with more. If the first scale still refuses, the other
    scales are tried, unless the confidence of learned descriptors is so low that they cannot help. Each is
    one more chance to be wrong: so a motion found at another scale is assessed at the first as well, by the
    matches there. The confidence is then the geometric mean of both, that of the other scale taken three
    times, and again the mirror image must not fit better. If no scale registers, the first scale's answer is
    returned. With `diagnose` it has notes on what may be wrong with the clouds, for which the mirror image is
    tried beside the other scales. Viewpoints that are not stated are estimated at the first scale. `seed` is
    that of the mirror test.

    Raises InputError, with what may be wrong, if the first scale leaves too few points.
    """
    scales = iter(scales)
    first, clock = next(scales), Clock()
    a, b = _described(first, source, target)
    clock.lap("describe")
    found = answer(first, a, b)
    clock.add(found.seconds)
    if not found.registered and found.confidence >= MIN_RETRIED_CONFIDENCE:
        twice = _described(first, source, target, twice=True)
        clock.lap("describe")
        other = answer(first, *twice)
        clock.add(other.seconds)
        found = max(found, other, key=lambda each: each.confidence)
    found = replace(found, seconds=clock.seconds)

    def mirror_test() -> float:
        testing = Clock()
        confidence = mirror_confidence(first, a, b, seed)
        testing.lap("mirror_test")
        clock.add(testing.seconds)
        return confidence

    if found.registered:
        in_mirror = mirror_test() if found.confidence < ACCEPT_CONFIDENCE else 0.0
        if found.confidence >= in_mirror:
            return replace(found, notes=diagnostics.notes_if_registered(found, a, b))
        reason = "the clouds fit better if one is mirrored"
        return found.refused(1 - in_mirror, reason, notes=(diagnostics.MIRRORED,))
    if first.descriptor.fingerprint and found.confidence < MIN_RETRIED_CONFIDENCE:
        scales = iter(())

    def other_scales() -> tuple[Registration | None, dict[str, float]]:
        return _at_another_scale(scales, (source, a), (target, b), first, answer)

    tries = [other_scales, mirror_test] if diagnose else [other_scales]
    (other, more), *tested = parallel.each(lambda attempt: attempt(), tries, first.descriptor.device)
    clock.add(more)
    if other and other.confidence >= (tested[0] if tested else mirror_test()):
        return replace(other, seconds=clock.seconds, notes=diagnostics.notes_if_registered(other, a, b))
    if not diagnose:
        return found
    notes = diagnostics.duplicates(a, b) + diagnostics.degenerate_surfaces(a, b)
    notes += diagnostics.unknown_viewpoints(a, b)
    notes += diagnostics.doubtful_units(source.points, target.points, differ=True)
    if tested[0] >= MIN_CONFIDENCE:
        notes.append(diagnostics.MIRRORED)
    return replace(found, notes=tuple(notes))


def _described(
    first: SingleScaleRegistrar, source: PreparedCloud, target: PreparedCloud, *, twice: bool = False
) -> tuple[DescribedCloud, DescribedCloud]:
    """Both clouds at the first scale; InputError, with what may be wrong, if too few points are left."""
    try:
        descriptor = first.descriptor
        a, b = parallel.each(
            lambda cloud: cloud.at(descriptor, twice=twice), (source, target), descriptor.device
        )
    except OutputError:  # no fault of the clouds
        raise
    except InputError as error:
        if words := diagnostics.doubtful_units(source.points, target.points, differ=True):
            names = source.name or "source", target.name or "target"
            raise InputError(f"{', '.join(names)}: {words[0]}") from error
        raise
    return a, b


def _at_another_scale(
    scales: Iterable[SingleScaleRegistrar],
    source: tuple[PreparedCloud, DescribedCloud],
    target: tuple[PreparedCloud, DescribedCloud],
    first: SingleScaleRegistrar,
    answer: Answer,
) -> tuple[Registration | None, dict[str, float]]:
    """The first answer at these scales that `first` confirms by the clouds at its scale; seconds of all."""
    (_, a), (_, b) = source, target
    total = Clock()
    for scale in scales:
        clock = Clock()
        try:
            described = parallel.each(
                lambda pair, descriptor=scale.descriptor: pair[0].at(descriptor, pair[1].seen_from),
                (source, target),
                scale.descriptor.device,
            )
        except OutputError:
            raise
        except InputError:  # too few points at this scale
            continue
        clock.lap("describe")
        other = answer(scale, *described)
        total.add(clock.seconds)
        total.add(other.seconds)
        if not other.registered:
            continue
        again = first.assess(a, b, other.T_target_source)
        total.add(again.seconds)
        confidence = (other.confidence**3 * again.confidence) ** 0.25
        if confidence >= MIN_CONFIDENCE:
            finer = min(other, again, key=lambda each: each.voxel)
            reason = f"{other.reason}; at voxel {again.voxel:g} m {again.inliers} inliers confirm it"
            confirmed = replace(
                finer, registered=True, confidence=confidence, reason=reason, alternative=None
            )
            return confirmed, total.seconds
    return None, total.seconds


def mirror_confidence(
    scale: SingleScaleRegistrar, source: DescribedCloud, target: DescribedCloud, seed: int
) -> float:
    """The confidence in one motion of the source with its first axis flipped."""
    flipped = mirrored(source, scale.descriptor)
    # A source that is mirrored, and otherwise right, fits at once; a prior does not hold for it
    return replace(scale, sure=0.0, prior=ANY).match(flipped, target, seed=seed).confidence
