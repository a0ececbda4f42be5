"""Registration of a source without metric scale to a metric target: Sim(3).

Structure from motion gives such a source. Its scale is found first. Descriptors are of metric size, so
the source is described at several sizes, a factor of 1.25 apart, around the one at which it extends as far as
the target: within an eighth of the right size descriptors still match. Distances are more sensitive: at each
size the matches are enlarged in steps of 3 %, and those that then agree on one rigid motion give the scale by
Umeyama's least squares. ICP that also enlarges refines the scale.

The enlarged source is then registered as any other. Other scales that many matches propose are judged, too:
an answer is refused where two scales fit about equally well, and where the overlap lies on itself when the
source grows.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcreg.geometry.se3 import enlargement, residuals, scale_of, umeyama
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.estimation.icp import Surface, refine_similarity
from pcreg.registration.judge.confidence import MIN_CONFIDENCE
from pcreg.registration.judge.observability import MIN_OBSERVABILITY, growth_observability
from pcreg.registration.judge.overlap import Overlap
from pcreg.registration.matching.prior import Prior
from pcreg.registration.matching.screening import (
    KEYPOINT_DISTANCE_VOXELS,
    MIN_AGREEMENT,
    MIN_MATCHES,
    Keypoints,
    agreeing,
    mutual_matches,
)
from pcreg.registration.matching.spatial_consistency import consistent_motions
from pcreg.registration.result import Registration
from pcreg.registration.strategy.diagnostics import MAX_EXTENT_RATIO
from pcreg.registration.strategy.fallback import answer_at_scales
from pcreg.registration.strategy.single_scale import CONTACT_DISTANCE_VOXELS, SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import attempted
from pcreg.runtime.progress import Clock

DESCRIPTION_STEP = 1.25  # between sizes at which the source is described
ENLARGEMENTS = 1.03 ** np.arange(-4, 5)  # of the matches at each size: half a DESCRIPTION_STEP each way
SAME_SCALE = 1.1  # ratio up to which two proposals are one
REFITS = 5  # by least squares to the agreeing matches, which each fit may change
MAX_ANSWERS = 3  # scales that are judged
REFINEMENTS = 3  # of a scale, each with a new description
REFINED = 1.01  # ratio of the scales before and after a refinement; below it the scale is final


class ProposedScale(NamedTuple):
    """A size of the source and how many matches agree on it."""

    scale: float  # by which the coordinates of the source are to be multiplied
    agreeing: int


class _Answer(NamedTuple):
    """The source at one scale, and its registration between local frames."""

    scale: float
    enlarged: PreparedCloud
    found: Registration


def register_similarity(
    source: PreparedCloud,
    target: PreparedCloud,
    scales_of: Callable[[PreparedCloud, PreparedCloud], Iterator[SingleScaleRegistrar]],
    *,
    seed: int,
    prior: Prior,
    thorough: bool,
) -> Registration:
    """Find the scale of the source, and register the enlarged source as any other.

    The answer is about the source as given; `Registration.scale` says how much it was enlarged. Raises
    InputError as `Registrar.register`.
    """
    clock = Clock()
    around = target.extent / source.extent
    at = replace(next(scales_of(source.enlarged(around), target)), prior=prior)
    options = {"seed": seed, "prior": prior, "thorough": thorough}
    proposed = proposed_scales(source, target, at, around) or [ProposedScale(around, 0)]
    clock.lap("scale_search")
    answers: list[_Answer] = []
    for proposal in proposed[:MAX_ANSWERS]:
        is_tried = proposal.agreeing >= MIN_AGREEMENT * proposed[0].agreeing
        if is_tried or not any(answer.found.registered for answer in answers):
            scale = _refined(source, target, at, proposal.scale, seed)
            clock.lap("scale_refinement")
            enlarged = source.enlarged(scale)
            found = answer_at_scales(enlarged, target, scales_of(enlarged, target), **options)
            clock.add(found.seconds)
            answers.append(_Answer(scale, enlarged, found))
    best = max(answers, key=lambda answer: (answer.found.registered, answer.found.confidence))
    others = [answer for answer in answers if _ratio(answer.scale, best.scale) > SAME_SCALE]
    rival = max(others, key=lambda other: other.found.confidence, default=best)
    least, most = sorted((best.scale, rival.scale))
    reason = f"the scale cannot be determined: {least:.3g} and {most:.3g} fit about equally well"
    found = best.found.among([other.found for other in others], reason)
    if found.registered:
        found = _observable(found, best.enlarged, target, at)
    found = replace(found, scale=best.scale, seconds=clock.seconds)
    return _in_source_units(found.of_clouds(best.enlarged, target), source)


def _in_source_units(found: Registration, source: PreparedCloud) -> Registration:
    """A registration of the enlarged source as one of the source as given, without its rigid covariance."""
    growth = enlargement(found.scale)
    return replace(
        found,
        T_target_source=found.T_target_source @ growth,
        alternative=None if found.alternative is None else found.alternative @ growth,
        matched_points=found.matched_points / np.array([found.scale, 1.0])[:, None],
        viewpoints=(source.stated, found.viewpoints[1]),
        covariance=None,
        local_covariance=None,
        clouds=None if found.clouds is None else (source.cloud, found.clouds[1]),
    )


def proposed_scales(
    source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar, around: float
) -> list[ProposedScale]:
    """Scales of the source that differ by a tenth or more, those with most agreeing matches first.

    The source is described at sizes within a factor of 2.5 of `around`, both clouds `at` one voxel size.
    Empty if hardly any matches are mutual; InputError if a cloud has too few points at that voxel size.
    """
    there = Keypoints.of(target.at(at.descriptor), at.voxel)
    middle = source.enlarged(around).at(at.descriptor)  # an estimated viewpoint serves for all sizes
    steps = round(np.log(MAX_EXTENT_RATIO) / np.log(DESCRIPTION_STEP))
    sizes = around * DESCRIPTION_STEP ** np.arange(-steps, steps + 1)

    def fitted(size: float) -> ProposedScale | None:
        """The scale near a size; None if the source has too few points or matches."""
        enlarged = source.enlarged(size)
        viewpoint = Viewpoint(middle.viewpoint * (size / around), middle.viewpoint_known)
        here, _ = attempted(lambda: Keypoints.of(enlarged.at(at.descriptor, viewpoint), at.voxel))
        if here is None:
            return None
        points, partners = mutual_matches(here, there)
        if len(points) < MIN_MATCHES:
            return None
        distance = KEYPOINT_DISTANCE_VOXELS * at.voxel
        fits = [_fit(points, partners, float(factor), distance, at.prior) for factor in ENLARGEMENTS]
        factor, most = max(fits, key=lambda fit: fit[1])
        return ProposedScale(size * factor, most)

    found = [each for each in parallel.each(fitted, sizes.tolist()) if each]
    distinct: list[ProposedScale] = []
    for each in sorted(found, key=lambda each: -each.agreeing):
        if all(_ratio(each.scale, other.scale) > SAME_SCALE for other in distinct):
            distinct.append(each)
    return distinct


def _fit(
    points: np.ndarray, partners: np.ndarray, factor: float, distance: float, prior: Prior
) -> tuple[float, int]:
    """The scale near a factor on which most matches (P, 3), (P, 3) agree to `distance`, and how many do."""
    motions = consistent_motions(factor * points, partners, distance, prior)
    if len(motions) == 0:
        return factor, 0
    agree = agreeing(motions.astype(np.float32), factor * points, partners, distance)  # (H, P)
    inliers = agree[agree.sum(1).argmax()]
    best, most = factor, int(inliers.sum())
    for _ in range(REFITS):
        if most < MIN_MATCHES:
            break
        T = umeyama(points[inliers], partners[inliers])
        inliers = residuals(T, points, partners) < distance
        if inliers.sum() < most:
            break
        best, most = scale_of(T), int(inliers.sum())
    return best, most


def _refined(
    source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar, scale: float, seed: int
) -> float:
    """The scale near a proposed one at which the surfaces fit, if the likeliest motion there is right."""
    for _ in range(REFINEMENTS):
        a, b = source.enlarged(scale).at(at.descriptor), target.at(at.descriptor)
        T = at.match(a, b, seed=seed).T_target_source
        surfaces = (Surface(each.surface, each.normals) for each in (a, b))
        factor = scale_of(refine_similarity(*surfaces, T, at.voxel))
        if not 1 / SAME_SCALE < factor < SAME_SCALE:  # a wrong motion
            break
        scale *= factor
        if _ratio(factor, 1) < REFINED:
            break
    return scale


def _ratio(a: float, b: float) -> float:
    return max(a / b, b / a)


def _observable(
    found: Registration, source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar
) -> Registration:
    """The registration, refused if the overlap does not constrain the scale."""
    a, b = source.at(at.descriptor), target.at(at.descriptor)
    distance = CONTACT_DISTANCE_VOXELS * at.voxel
    overlap = Overlap.of(a.surface, b.surface, b.normals, found.T_target_source, distance)
    if growth_observability(overlap.points, overlap.normals) >= MIN_OBSERVABILITY:
        return found
    return found.refused(
        min(found.confidence, 1 - MIN_CONFIDENCE),
        "the scale is not determined: the overlap lies on itself when the source grows",
    )
