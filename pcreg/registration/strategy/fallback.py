"""Further tries after a refusal or a doubtful answer, such as other scales."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import DescribedCloud, mirrored
from pcreg.registration.judge.confidence import ACCEPT_CONFIDENCE, MIN_CONFIDENCE
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.result import Registration
from pcreg.registration.strategy import diagnostics
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError, attempted
from pcreg.runtime.progress import Clock

# Confidence of a refusal below which another try with learned descriptors hardly helps. Of simulated pairs
# that are refused with less, 0 of 700 are registered at another voxel size and 1 of 644 by a second sample of
# the points; of those refused with more, 20 of 544 and 16 of 281.
MIN_RETRIED_CONFIDENCE = 0.03


def answer_at_scales(
    source: PreparedCloud,
    target: PreparedCloud,
    scales: Iterable[SingleScaleRegistrar],
    T_target_source: np.ndarray | None = None,
    *,
    seed: int = 0,
    prior: Prior = ANY,
    thorough: bool = True,
) -> Registration:
    """The answer at the first scale or, after a refusal or a doubt, by further tries.

    An answer is that of a search or, if a motion (4, 4) between the local frames is given, the verdict on it.

    1. After a refusal the first scale answers again, by features averaged over two samples of each cloud. The
       likelier answer counts.
    2. A registration below 0.95 is refused without further tries if the mirrored source has more confidence.
    3. After a refusal a `thorough` search takes a cloud for an object seen from all sides, such as a model,
       if its estimated viewpoint lies within it, and answers again, by the first two hypotheses alone if
       neither is promising. The likelier answer counts.
    4. After another refusal it tries the other scales. Each scale is one more chance to be wrong. So a motion
       found there is assessed at the first scale as well, and its confidence, the geometric mean of both with
       that of the other scale taken three times, must reach that of the mirrored source.
    5. If no scale registers, the refusal of the first is returned, after a thorough search with notes on what
       may be wrong with the clouds.

    If the confidence is too low for further tries, step 1 is left out, and with learned descriptors step 4,
    too. Viewpoints that are not stated are estimated at the first scale. The `prior` holds between the given
    frames. Raises InputError, with what may be wrong, if the first scale leaves too few points.
    """
    prior = prior.between(source.frame.corner, target.frame.corner)
    scales = (replace(scale, prior=prior) for scale in scales)
    first, clock = next(scales), Clock()

    def answer(scale: SingleScaleRegistrar, described: Sequence[DescribedCloud]) -> Registration:
        if T_target_source is None:
            return scale.match(*described, seed=seed)
        return scale.verify(*described, T_target_source, first.match_distance, turned=True)

    def answer_at_first(promising: float = 0.0, **way: Any) -> tuple[Registration, list[DescribedCloud]]:
        described = _at_first_scale(first, source, target, **way)
        clock.lap("describe")
        found = answer(replace(first, promising=promising), described)
        clock.add(found.seconds)
        return found, described

    found, described = answer_at_first()
    if not found.registered and found.confidence >= MIN_RETRIED_CONFIDENCE:
        again, _ = answer_at_first(twice=True)
        found = max(found, again, key=lambda each: each.confidence)
    if not found.registered and thorough and any(around := [cloud.may_be_whole for cloud in described]):
        whole, from_around = answer_at_first(MIN_RETRIED_CONFIDENCE, around=around)
        if whole.confidence > found.confidence:
            found, described = whole, from_around
    if found.registered:
        return mirror_tested(replace(found, seconds=clock.seconds), first, *described, seed)
    if not thorough:
        return replace(found, seconds=clock.seconds)

    def elsewhere() -> Registration | None:
        if first.descriptor.fingerprint and found.confidence < MIN_RETRIED_CONFIDENCE:
            return None
        return _at_another_scale(scales, (source, target), first, described, answer, clock)

    tries = elsewhere, partial(mirror_confidence, first, *described, seed, clock)
    other, in_mirror = parallel.each(lambda attempt: attempt(), tries, first.descriptor.device)
    if other and other.confidence >= in_mirror:
        found, notes = other, diagnostics.notes_if_registered(other, *described)
    else:
        is_mirrored = in_mirror >= MIN_CONFIDENCE
        points = source.points, target.points
        notes = diagnostics.notes_if_refused(*described, *points, prior, is_mirrored)
    return replace(found, seconds=clock.seconds, notes=notes)


def mirror_tested(
    found: Registration,
    scale: SingleScaleRegistrar,
    source: DescribedCloud,
    target: DescribedCloud,
    seed: int,
) -> Registration:
    """A registration with its notes, or refused if it is doubtful and the mirrored source fits better."""
    clock, in_mirror = Clock(), 0.0
    if found.confidence < ACCEPT_CONFIDENCE:
        in_mirror = mirror_confidence(scale, source, target, seed, clock)
    found = replace(found, seconds=found.seconds | clock.seconds)
    if found.confidence >= in_mirror:
        return replace(found, notes=diagnostics.notes_if_registered(found, source, target))
    reason = "the clouds fit better if one is mirrored"
    return found.refused(1 - in_mirror, reason, notes=(diagnostics.MIRRORED,))


def mirror_confidence(
    scale: SingleScaleRegistrar, source: DescribedCloud, target: DescribedCloud, seed: int, total: Clock
) -> float:
    """The confidence with which the source registers after its first axis is flipped."""
    clock, flipped = Clock(), mirrored(source, scale.descriptor)
    # sure=0 tries the first motions alone: a mirrored source fits at once. The prior does not hold for it
    found = replace(scale, sure=0.0, prior=ANY).match(flipped, target, seed=seed)
    clock.lap("mirror_test")
    total.add(clock.seconds)
    return found.confidence


def _at_first_scale(
    scale: SingleScaleRegistrar, source: PreparedCloud, target: PreparedCloud, **way: Any
) -> list[DescribedCloud]:
    """Describe both clouds; InputError, with what may be wrong, if too few points are left."""
    found, error = attempted(lambda: _described(scale, source, target, **way))
    if found is not None:
        return found
    if words := diagnostics.doubtful_units(source.points, target.points, differ=True):
        error = f"{source.name or 'source'}, {target.name or 'target'}: {words[0]}"
    raise InputError(error)


def _at_another_scale(
    scales: Iterable[SingleScaleRegistrar],
    clouds: tuple[PreparedCloud, PreparedCloud],
    first: SingleScaleRegistrar,
    at_first: Sequence[DescribedCloud],
    answer: Callable[[SingleScaleRegistrar, Sequence[DescribedCloud]], Registration],
    total: Clock,
) -> Registration | None:
    """The first answer at these scales that `first` confirms by the clouds at its scale."""
    around = [cloud.viewpoint.ndim == 2 and not cloud.viewpoint_known for cloud in at_first]
    viewpoints = [
        None if whole else Viewpoint(cloud.viewpoint, cloud.viewpoint_known)
        for cloud, whole in zip(at_first, around, strict=True)
    ]
    for scale in scales:
        clock = Clock()
        described, _ = attempted(partial(_described, scale, *clouds, viewpoints, around=around))
        if described is None:  # too few points at this scale
            continue
        clock.lap("describe")
        other = answer(scale, described)
        total.add(clock.seconds)
        total.add(other.seconds)
        if not other.registered:
            continue
        again = first.assess(*at_first, other.T_target_source)
        total.add(again.seconds)
        confidence = (other.confidence**3 * again.confidence) ** 0.25
        if confidence >= MIN_CONFIDENCE:
            finer = min(other, again, key=lambda each: each.voxel)
            reason = f"{other.reason}; at voxel {again.voxel:g} m {again.inliers} inliers confirm it"
            return replace(finer, registered=True, confidence=confidence, reason=reason, alternative=None)
    return None


def _described(
    scale: SingleScaleRegistrar,
    source: PreparedCloud,
    target: PreparedCloud,
    viewpoints: Sequence[Viewpoint | None] = (None, None),
    *,
    twice: bool = False,
    around: Sequence[bool] = (False, False),
) -> list[DescribedCloud]:
    """Describe both clouds, each with the viewpoint that was decided at another scale, if any."""

    def described(cloud: PreparedCloud, viewpoint: Viewpoint | None, around: bool) -> DescribedCloud:
        return cloud.at(scale.descriptor, viewpoint, twice=twice, around=around)

    clouds = zip((source, target), viewpoints, around, strict=True)
    return parallel.each(lambda each: described(*each), clouds, scale.descriptor.device)
