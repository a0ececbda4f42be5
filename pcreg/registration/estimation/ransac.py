"""Rigid motions from matches of which most are wrong.

Random sample consensus (Fischler and Bolles, 1981); samples are drawn, checked and scored in batches. Even
with a seed, Open3D's RANSAC gives different answers from run to run unless the process has one core alone.
"""

import logging
import math
from collections.abc import Callable

import numpy as np

from pcreg.arrays import Array, like, to_host
from pcreg.geometry.se3 import moved_by_each, residuals, translation
from pcreg.registration.estimation.consensus import MatchedPoints
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.matching.spatial_consistency import consistent_motions

log = logging.getLogger(__name__)

FIRST_BATCH = 500  # samples before the stopping rule is first checked; enough where most matches are right
BATCH, MAX_GPU_BATCHES = 5_000, 10  # samples between two checks, and as many times that for a GPU at once
MAX_HYPOTHESES = 1_000  # with the best scores, many of them nearly the same
MAX_DISTINCT = 15  # the best that differ, of random samples and of one-way matches each
MAX_RANKED = 12  # of both; one of them is right in 86.1 % of simulated pairs, one of 28 in 86.8 %
MIN_SEPARATION_DISTANCES = 3.0  # between the matched points as two distinct hypotheses move them
PROBE_POINTS = 24  # matched points at which motions are compared
# Relative to the score per match; these weights rank simulated pairs of rooms and streets best
AGREEMENT_WEIGHT = 0.7
FREE_SPACE_WEIGHT = 3.0
MIN_PROPOSED_SCORE = 2.0  # of motions from one-way matches: three inliers or more
MAX_UNCLEAR_RATIO = 0.3  # of inliers, up to which further motions are proposed


def ransac(
    source: Array,
    target: Array,
    *,
    distance: float,
    iterations: int = 50_000,
    confidence: float = 0.999,
    seed: int = 0,
    n: int | None = None,
    edge_length: float = 0.9,
    one_way: tuple[Array, Array] | None = None,
    agreement: Callable[[np.ndarray], np.ndarray] | None = None,
    free_space: Callable[[np.ndarray], np.ndarray] | None = None,
    prior: Prior = ANY,
) -> np.ndarray:
    """Motions (H, 4, 4) from source (P, 3) to target (P, 3), which are matched row by row.

    One to twelve motions that differ, the likeliest first.

    The edges of a random sample of `n` matches, by default as many as determine a motion, must have similar
    lengths in both clouds (shorter over longer > `edge_length`), and the motion fitted to the sample must
    bring it within `distance` metres: the two checks of Open3D. A motion scores 1 - (residual / distance)^2
    summed over the matches closer than `distance` (MSAC; Torr and Zisserman, 2000). Sampling ends after
    `iterations`, or once a sample without outliers was drawn with probability `confidence`, by the inlier
    ratio of the best motion.

    The best motions that differ are refitted to their inliers. If the best one has few inliers, further
    motions are proposed from `one_way`, points (K, 3) and (K, 3) of matches of which fewer are right
    (pcreg.registration.matching.spatial_consistency). A weighted sum ranks the motions: the score of the
    matches, `agreement`, the similarity of the descriptors of touching points, and `free_space`, a penalty
    from 0 to 1 for points in space that a sensor saw as free. Both functions take motions (H, 4, 4).

    With a `prior` only allowed motions are searched, matches that no allowed motion brings together are left
    out, and `prior.near` is tried, too. Motions are scored on the device of the points.

    With fewer than `n` matches, or none that agree, the result is `prior.near`, else the identity. The same
    input and seed give the same output on the same machine.
    """
    n, given = n or prior.sample_size, source
    source, target = to_host(source), to_host(target)  # few beside the points of the clouds
    possible = prior.possible(source, target, distance)
    source, target = source[possible], target[possible]
    P = len(source)
    if n > P:
        return np.eye(4)[None] if prior.near is None else prior.near[None]
    source_centre, target_centre = source.mean(0), target.mean(0)  # far from the origin digits are lost
    source, target = source - source_centre, target - target_centre
    prior = prior.between(source_centre, target_centre)
    matched = MatchedPoints(like(source, given), like(target, given), distance)

    motions, inlier_ratio = _sampled(matched, prior, seed, n, edge_length, iterations, confidence)
    found = [_hypotheses(motions, matched, prior)]
    if one_way is not None and inlier_ratio < MAX_UNCLEAR_RATIO:
        sides = to_host(one_way[0]) - source_centre, to_host(one_way[1]) - target_centre
        possible = prior.possible(*sides, distance)
        found.append(_consistent(*(like(side[possible], given) for side in sides), distance, prior))
    if prior.near is not None:
        found.append(prior.near[None])
    hypotheses = np.concatenate(found)
    if len(hypotheses) == 0:
        return np.eye(4)[None]
    to_clouds, from_clouds = translation(target_centre), translation(-source_centre)
    scores = matched.scores(hypotheses) / P
    for judge, weight in ((agreement, AGREEMENT_WEIGHT), (free_space, -FREE_SPACE_WEIGHT)):
        if judge:
            scores += weight * judge(to_clouds @ hypotheses @ from_clouds)
    hypotheses = hypotheses[np.argsort(-scores, kind="stable")]
    hypotheses = _distinct(hypotheses, source, MIN_SEPARATION_DISTANCES * distance, MAX_RANKED)
    return to_clouds @ hypotheses @ from_clouds


def _sampled(
    matched: MatchedPoints,
    prior: Prior,
    seed: int,
    n: int,
    edge_length: float,
    iterations: int,
    confidence: float,
) -> tuple[np.ndarray, float]:
    """Motions (H, 4, 4) of random samples, best first, and the inlier ratio of the best."""
    rng, P = np.random.default_rng(seed), len(matched.p)
    motions, scores = np.empty((0, 4, 4)), np.empty(0, dtype=np.float32)
    drawn, needed, inlier_ratio, batch = 0, iterations, 0.0, FIRST_BATCH
    log.info("estimate: from %d matches", P)
    while drawn < needed:
        log.debug("estimate: %d of at most %d samples of %d matches", drawn, needed, P)
        samples = rng.integers(P, size=(min(batch, iterations - drawn), n))
        drawn += len(samples)
        found = matched.motions_of(matched.with_like_edges(samples, edge_length), prior)
        motions = np.concatenate([motions, found])
        scores = np.concatenate([scores, matched.scores(found)])
        best = np.argsort(-scores, kind="stable")[:MAX_HYPOTHESES]
        motions, scores = motions[best], scores[best]
        if len(motions):
            inlier_ratio = float((residuals(motions[0], matched.p, matched.q) < matched.distance).mean())
            needed = min(iterations, _samples_needed(inlier_ratio, n, confidence))
        batch = BATCH * min(MAX_GPU_BATCHES if matched.on_gpu else 1, math.ceil((needed - drawn) / BATCH))
    return motions, inlier_ratio


def _consistent(source: Array, target: Array, distance: float, prior: Prior) -> np.ndarray:
    """The hypotheses (H, 4, 4) that spatial consistency proposes from one-way matches (K, 3), (K, 3)."""
    motions = consistent_motions(source, target, distance, prior)
    if len(motions) == 0:
        return motions
    matched = MatchedPoints(source, target, distance)
    return _hypotheses(_best_first(motions, matched, MIN_PROPOSED_SCORE), matched, prior)


def _samples_needed(inlier_ratio: float, n: int, confidence: float) -> float:
    """Number of samples of n that hold one without outliers with probability `confidence`."""
    clean = inlier_ratio**n
    if clean == 0.0 or confidence >= 1.0:
        return math.inf
    return 1 if clean == 1.0 else math.ceil(math.log1p(-confidence) / math.log1p(-clean))


def _best_first(motions: np.ndarray, matched: MatchedPoints, min_score: float = -1.0) -> np.ndarray:
    """The motions (H, 4, 4) that score more than `min_score`, best first."""
    scores = matched.scores(motions)
    best = np.argsort(-scores, kind="stable")
    return motions[best[scores[best] > min_score]]


def _hypotheses(motions: np.ndarray, matched: MatchedPoints, prior: Prior) -> np.ndarray:
    """The best of motions (H, 4, 4), best first, that differ, refitted to their inliers."""
    min_separation = MIN_SEPARATION_DISTANCES * matched.distance
    motions = matched.refit(_distinct(motions, matched.p, min_separation, 4 * MAX_DISTINCT))
    motions = _best_first(motions[prior.allows(motions, matched.distance)], matched)
    return _distinct(motions, matched.p, min_separation, MAX_DISTINCT)


def _distinct(motions: np.ndarray, points: np.ndarray, min_separation: float, max_count: int) -> np.ndarray:
    """Up to `max_count` best motions (H, 4, 4) that move points (P, 3) `min_separation` metres apart, RMS."""
    probes = points[np.linspace(0, len(points) - 1, PROBE_POINTS).astype(int)]
    moved = moved_by_each(motions, probes).reshape(-1, 3 * PROBE_POINTS)  # (H, ...)
    left, kept = np.arange(len(motions)), []
    while len(left) and len(kept) < max_count:
        kept.append(left[0])
        offsets = moved[left] - moved[left[0]]
        squared = np.einsum("hc,hc->h", offsets, offsets) / PROBE_POINTS
        left = left[squared >= min_separation**2]
    return motions[kept]
