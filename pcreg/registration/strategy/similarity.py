"""Registration of a source without metric scale, such as structure from motion, to a metric target: Sim(3).

The scale comes first, since descriptors are of metric size: matches propose it
(pcreg.registration.strategy.scale_search), and point-to-plane ICP that also enlarges refines it. The
enlarged source is then registered as any other. What is right at one scale only is also judged at others that
many matches propose: where two fit about equally well, the scale cannot be told, nor where the overlap lies
on itself when the source grows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pcreg.arrays import to_host
from pcreg.geometry.similarity import enlargement, scale_of
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.estimation.icp import refine_similarity
from pcreg.registration.judge.confidence import MIN_CONFIDENCE
from pcreg.registration.judge.observability import MIN_OBSERVABILITY, growth_observability
from pcreg.registration.judge.overlap import Overlap
from pcreg.registration.result import Registration
from pcreg.registration.strategy.scale_search import SAME_SCALE, ProposedScale, extent_ratio, proposed_scales
from pcreg.registration.strategy.single_scale import OVERLAP_DISTANCE_VOXELS, SingleScaleRegistrar
from pcreg.runtime.progress import Clock

MAX_ANSWERS = 3  # scales that are judged
RIVAL_AGREEMENT = 0.5  # of the agreeing matches of the most promising scale, from which on one is a rival
REFINEMENTS = 3  # of a scale, each with a new description
REFINED = 1.01  # ratio of the scales before and after one, from which on another is worth it


@dataclass(frozen=True)
class _Answer:
    """The source at one scale, and its registration between local frames."""

    scale: float
    enlarged: PreparedCloud
    found: Registration


def register_similarity(
    source: PreparedCloud,
    target: PreparedCloud,
    scale_for: Callable[[PreparedCloud], SingleScaleRegistrar],
    register: Callable[[PreparedCloud], Registration],
) -> tuple[Registration, PreparedCloud]:
    """The registration of the enlarged source, between local frames, and the source enlarged.

    `scale_for` gives the registrar at the voxel size that suits an enlarged source and the target, and
    `register` registers such a source to the target by the road of `Registrar.register`. `Registration.scale`
    of the answer says how much the source was enlarged. Raises InputError as these do.
    """
    clock = Clock()
    around = extent_ratio(source, target)
    at = scale_for(source.enlarged(around))
    proposed = proposed_scales(source, target, at, around) or [ProposedScale(around, 0)]
    clock.lap("scale_search")
    answers: list[_Answer] = []
    for proposal in proposed[:MAX_ANSWERS]:
        is_rival = proposal.agreeing >= RIVAL_AGREEMENT * proposed[0].agreeing
        if is_rival or not any(answer.found.registered for answer in answers):
            refining = Clock()
            scale = _refined(source, target, at, proposal.scale)
            refining.lap("scale_refinement")
            enlarged = source.enlarged(scale)
            found = register(enlarged)
            answers.append(_Answer(scale, enlarged, replace(found, seconds=refining.seconds | found.seconds)))
    best = max(answers, key=lambda answer: (answer.found.registered, answer.found.confidence))
    others = [answer for answer in answers if _ratio(answer.scale, best.scale) > SAME_SCALE]
    for answer in answers:
        clock.add(answer.found.seconds)
    found = _among(best, others)
    if found.registered:
        found = _observable(found, best.enlarged, target, at)
    return replace(found, scale=best.scale, seconds=clock.seconds), best.enlarged


def in_source_units(found: Registration) -> Registration:
    """A registration of the source enlarged by `found.scale`, as one of the source as it was given.

    The covariance, which is of a rigid motion, is left out.
    """
    growth = enlargement(found.scale)
    viewpoint, other = found.viewpoints
    return replace(
        found,
        T_target_source=found.T_target_source @ growth,
        alternative=None if found.alternative is None else found.alternative @ growth,
        matched_points=found.matched_points / np.array([found.scale, 1.0])[:, None],
        viewpoints=(None if viewpoint is None else viewpoint / found.scale, other),
        covariance=None,
    )


def _refined(source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar, scale: float) -> float:
    """The scale near a proposed one at which the surfaces fit, if the likeliest motion there is right."""
    for _ in range(REFINEMENTS):
        a, b = source.enlarged(scale).at(at.descriptor), target.at(at.descriptor)
        T = at.match(a, b).T_target_source
        factor = scale_of(refine_similarity(a.surface, b.surface, b.normals, T, at.voxel))
        if not 1 / SAME_SCALE < factor < SAME_SCALE:  # a wrong motion
            break
        scale *= factor
        if _ratio(factor, 1) < REFINED:
            break
    return scale


def _ratio(a: float, b: float) -> float:
    return max(a / b, b / a)


def _among(best: _Answer, others: list[_Answer]) -> Registration:
    """The best answer, given those at other scales: at most one of them is right."""
    found = best.found
    odds = [each.confidence / (1 - each.confidence) for each in (found, *(other.found for other in others))]
    confidence = odds[0] / (1 + sum(odds))
    if not found.registered or confidence >= MIN_CONFIDENCE:
        return replace(found, confidence=min(confidence, found.confidence))
    rival = max(others, key=lambda other: other.found.confidence)
    return replace(
        found,
        registered=False,
        confidence=confidence,
        covariance=None,
        reason=f"the scale cannot be told: {best.scale:.3g} and {rival.scale:.3g} fit about equally well",
    )


def _observable(
    found: Registration, source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar
) -> Registration:
    """What was found, refused if the overlap does not constrain the scale."""
    a, b = source.at(at.descriptor), target.at(at.descriptor)
    distance = OVERLAP_DISTANCE_VOXELS * at.voxel
    overlap = Overlap.of(a.surface, b.surface, b.normals, found.T_target_source, distance)
    observability = growth_observability(to_host(overlap.points), to_host(overlap.normals))
    if observability >= MIN_OBSERVABILITY:
        return found
    return replace(
        found,
        registered=False,
        confidence=min(found.confidence, 1 - MIN_CONFIDENCE),
        covariance=None,
        reason="the scale cannot be told: the overlap lies on itself when the source grows",
    )
