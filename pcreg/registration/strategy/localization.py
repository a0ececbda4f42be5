"""Localization of a scan in a map: registration to the most promising regions."""

from dataclasses import replace

from pcreg.arrays import to_host
from pcreg.geometry.se3 import transform
from pcreg.registration.clouds.local_frame import between_given
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.judge.confidence import ACCEPT_CONFIDENCE
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.matching.screening import MIN_AGREEMENT, Keypoints
from pcreg.registration.result import Registration
from pcreg.registration.strategy.fallback import mirror_tested
from pcreg.registration.strategy.prepared_map import PreparedMap
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.progress import Clock

Answer = tuple[Registration, PreparedCloud]  # to a region of the map, and this region


def locate(
    scan: PreparedCloud,
    target: PreparedMap,
    scale: SingleScaleRegistrar,
    *,
    seed: int = 0,
    prior: Prior = ANY,
) -> Answer:
    """The answer with the highest confidence, and the region of the map that it is about.

    After an answer with a confidence of 0.95 or more only regions elsewhere are tried, if they have at least
    half as many agreeing matches as the best. If one of them fits about as well, the map repeats itself, and
    the scan is refused. A registration with less confidence has to pass the mirror test. Scan and regions are
    compared at this scale alone. Raises InputError if scan or map have too few points for the scale.
    """
    clock = Clock()
    described = scan.at(scale.descriptor)
    regions = target.regions(scale)
    priors = {each: prior.between(scan.frame.corner, each.frame.corner) for each in regions.clouds}
    proposed = regions.proposed(Keypoints.of(described, scale.voxel), list(priors.values()))
    clock.lap("propose")
    answers: list[Answer] = []
    sure = None  # the first answer that ends the search
    for region, agreeing in proposed:
        if sure and (agreeing < MIN_AGREEMENT * proposed[0][1] or _holds(region, scan, *sure)):
            continue
        within = replace(scale, prior=priors[region])
        answer = within.match(described, region.at(scale.descriptor), seed=seed)
        clock.add(answer.seconds)
        answers.append((answer, region))
        if answer.registered and answer.confidence >= ACCEPT_CONFIDENCE:
            sure = sure or answers[-1]
    found, region = sure or max(answers, key=lambda answer: (answer[0].registered, answer[0].confidence))
    if found.registered:
        found = mirror_tested(found, scale, described, region.at(scale.descriptor), seed)
    T = region.frame.T_given_local @ found.T_target_source
    others = [
        (other, where)
        for other, where in answers
        if not scale.is_same(described, T, where.frame.T_given_local @ other.T_target_source)
    ]
    rival, where = max(others, key=lambda each: each[0].confidence, default=(found, region))
    found = found.among(
        [other for other, _ in others],
        "two places of the map fit about equally well; it may repeat itself",
        alternative=region.frame.T_local_given @ where.frame.T_given_local @ rival.T_target_source,
    )
    return replace(found, seconds=found.seconds | clock.seconds), region


def _holds(region: PreparedCloud, scan: PreparedCloud, found: Registration, where: PreparedCloud) -> bool:
    """True if the middle of the scan, which is registered to the region `where`, lies in `region`, too."""
    T = between_given(found.T_target_source, scan.frame, where.frame)
    middle = transform(T, scan.frame.T_given_local[:3, 3] + to_host(scan.points.mean(0)))
    low, high = region.cloud.box
    return bool(((low <= middle) & (middle <= high)).all())
