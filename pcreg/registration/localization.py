"""A scan in a map: registered to the few regions that promise most, by the one road of a pair."""

from dataclasses import replace

from pcreg.registration.fallback import ACCEPT_CONFIDENCE, answer_at_scales
from pcreg.registration.prepared import PreparedCloud
from pcreg.registration.prepared_map import PreparedMap
from pcreg.registration.prior import ANY, Prior
from pcreg.registration.result import Registration
from pcreg.registration.screening import Sketch
from pcreg.registration.single_scale import SingleScaleRegistrar
from pcreg.runtime.timer import Clock


def locate(
    scan: PreparedCloud,
    target: PreparedMap,
    scale: SingleScaleRegistrar,
    *,
    seed: int = 0,
    prior: Prior = ANY,
) -> tuple[Registration, PreparedCloud]:
    """The answer with the highest confidence, and the region of the map that it is about.

    A confidence of 0.95 or more ends the search; a registration with less has to pass the mirror test. Scan
    and regions are compared at this one scale. That a map repeats itself is noticed within a region alone.
    Raises InputError if scan or map have too few points at it.
    """
    clock = Clock()
    described = scan.at(scale)
    proposed = target.regions(scale).proposed(Sketch.of(described, scale.voxel))
    clock.lap("propose")
    answers: list[tuple[Registration, PreparedCloud]] = []
    for region in proposed:
        within = replace(scale, prior=prior.between(scan.frame.corner, region.frame.corner))
        answers.append((within.match(described, region.at(scale), seed=seed), region))
        if answers[-1][0].registered and answers[-1][0].confidence >= ACCEPT_CONFIDENCE:
            break
    found, region = max(answers, key=lambda answer: (answer[0].registered, answer[0].confidence))
    for answer, _ in answers:
        for step, value in answer.seconds.items():
            clock.seconds[step] = round(clock.seconds.get(step, 0.0) + value, 4)
    if found.registered:
        found = answer_at_scales(scan, region, [scale], lambda *_: found, seed=seed)
    return replace(found, seconds=found.seconds | clock.seconds), region
