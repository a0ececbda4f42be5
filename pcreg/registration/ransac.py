"""A rigid motion from matches of which most are wrong.

Random sample consensus (Fischler and Bolles, 1981), drawn, checked and scored in batches. It is ours
because it has to repeat: Open3D's, seeded, gives different answers from run to run unless the process
is pinned to one core.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial import KDTree

from pcreg.geometry.se3 import procrustes, se3, transform

log = logging.getLogger(__name__)

FIRST_BATCH = 500  # samples before the first look at the stopping rule; enough where most matches are right
BATCH = 5_000  # samples drawn between two further looks
BLOCK = 1 << 19  # residuals held at a time, few enough to stay in the cache
MAX_HYPOTHESES = 1_000  # motions that agree best with the matches, many of them nearly the same
MAX_FINALISTS = 15  # the best that differ, between which matches, points and free space decide
MIN_SEPARATION = 3.0  # distances by which finalists move the matched points apart
PROBES = 24  # matched points that tell it
MAX_SCORED_POINTS = 5_000  # source points, at most, that are asked
FREE_SPACE_PENALTY = 1.0  # what speaks wholly against a motion costs so many times all matches
MAX_SIMILAR_HYPOTHESES = 50  # motions like the winner, of which the one that fits best is taken


@dataclass(frozen=True)
class Estimate:
    T_target_source: np.ndarray  # (4, 4) float64
    inliers: int  # matches that the motion brings closer than the distance
    inlier_ratio: float  # inliers over all matches
    drawn: int  # samples


def ransac(
    source: np.ndarray,
    target: np.ndarray,
    *,
    distance: float,
    iterations: int = 50_000,
    confidence: float = 0.999,
    seed: int = 0,
    n: int = 3,
    edge_length: float = 0.9,
    free_space: Callable[[np.ndarray], float] | None = None,
) -> Estimate:
    """The motion that brings source (P, 3) and target (P, 3), matched row by row, together.

    Of each random sample of `n` >= 3 matches the edges must have like lengths on both sides (shorter
    over longer > `edge_length`), and the motion fitted to it must bring the sample within `distance`
    metres: the two checks of Open3D. A motion scores 1 - (residual / distance)^2 summed over the
    matches closer than `distance` (MSAC; Torr and Zisserman, 2000). Sampling ends after `iterations`,
    or once the inlier ratio found says that with probability `confidence` a sample without outliers
    was drawn.

    The best motions that differ are refitted to their inliers. What speaks for one is the score of the
    matches and that of source points against their nearest target points, as in Open3D: where few
    matches are right, whole surfaces tell more. What speaks against it `against` says, given the motion
    (4, 4): from 0 to 1, such as pcreg.registration.free_space.FreeSpace. Of all motions like the winner the
    one that fits best is returned.

    Fewer than `n` matches, or none that agree, give the identity with no inliers.
    Same input and seed on the same machine: same output.
    """
    P = len(source)
    if n > P:
        return Estimate(np.eye(4), inliers=0, inlier_ratio=0.0, drawn=0)
    rng = np.random.default_rng(seed)
    source_centre, target_centre = source.mean(0), target.mean(0)  # far from the origin digits are lost
    source, target = source - source_centre, target - target_centre
    light_source, light_target = source.astype(np.float32), target.astype(np.float32)

    motions, scores = np.empty((0, 4, 4)), np.empty(0, dtype=np.float32)
    drawn, needed = 0, iterations
    log.info("estimate: from %d matches", P)
    while drawn < needed:
        log.debug("estimate: %d of at most %d samples of %d matches", drawn, needed, P)
        batch = BATCH if drawn else FIRST_BATCH
        samples = rng.integers(P, size=(min(batch, iterations - drawn), n))
        drawn += len(samples)
        samples = _edges_agree(samples, light_source, light_target, edge_length)
        found = _motions(source[samples], target[samples], distance)
        motions = np.concatenate([motions, found])
        scores = np.concatenate([scores, _scores(found, source, target, distance)])
        best = np.argsort(-scores, kind="stable")[:MAX_HYPOTHESES]
        motions, scores = motions[best], scores[best]
        if len(motions):
            inlier_ratio = _inliers(motions[0], source, target, distance).mean()
            needed = min(iterations, _samples_needed(inlier_ratio, n, confidence))
    if len(motions) == 0:
        return Estimate(np.eye(4), inliers=0, inlier_ratio=0.0, drawn=drawn)
    finalists = _refitted(
        _distinct(motions, source, MIN_SEPARATION * distance, 4 * MAX_FINALISTS), source, target, distance
    )
    finalists = _distinct(finalists, source, MIN_SEPARATION * distance, MAX_FINALISTS)
    scores = _merits(finalists, source, target, distance)
    to_clouds, from_clouds = se3(np.eye(3), target_centre), se3(np.eye(3), -source_centre)
    if free_space:
        scores -= (
            FREE_SPACE_PENALTY * P * np.array([free_space(to_clouds @ T @ from_clouds) for T in finalists])
        )
    winner = finalists[np.argmax(scores)]
    alike = motions[_max_displacements(motions, winner, source) < MIN_SEPARATION * distance][
        :MAX_SIMILAR_HYPOTHESES
    ]
    alike = np.concatenate([winner[None], _refitted(alike, source, target, distance)])
    T = alike[np.argmax(_merits(alike, source, target, distance))]
    inliers = int(_inliers(T, source, target, distance).sum())
    return Estimate(to_clouds @ T @ from_clouds, inliers, inliers / P, drawn)


def _edges_agree(
    samples: np.ndarray, source: np.ndarray, target: np.ndarray, edge_length: float
) -> np.ndarray:
    """Those of the samples (S, n) whose edges have like lengths in source (P, 3) and target (P, 3).

    Edge by edge, so that the later ones are measured of the few samples left. Strict, so that a sample
    that holds a match twice, an edge of no length, is refused.
    """
    for first, second in combinations(range(samples.shape[1]), 2):
        i, j = samples[:, first], samples[:, second]
        a, b = (_squared(side[i] - side[j]) for side in (source, target))  # squared lengths
        samples = samples[np.minimum(a, b) > edge_length**2 * np.maximum(a, b)]
    return samples


def _squared(rows: np.ndarray) -> np.ndarray:
    return np.einsum("sc,sc->s", rows, rows)


def _motions(source: np.ndarray, target: np.ndarray, distance: float) -> np.ndarray:
    """The motions (H, 4, 4) of those samples (S, n, 3), (S, n, 3) that they bring within `distance`."""
    T = _fit(source, target)
    moved = source @ T[:, :3, :3].transpose(0, 2, 1) + T[:, None, :3, 3]
    return T[(np.linalg.norm(moved - target, axis=2) < distance).all(1)]


def _fit(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Kabsch's solution (S, 4, 4) of every sample (S, n, 3)."""
    source_centre, target_centre = source.mean(1), target.mean(1)
    covariance = (source - source_centre[:, None]).transpose(0, 2, 1) @ (target - target_centre[:, None])
    U, _, Vt = np.linalg.svd(covariance)
    Vt[:, 2] *= np.sign(np.linalg.det(U) * np.linalg.det(Vt))[:, None]  # reflections excluded
    T = np.tile(np.eye(4), (len(source), 1, 1))
    T[:, :3, :3] = Vt.transpose(0, 2, 1) @ U.transpose(0, 2, 1)
    T[:, :3, 3] = target_centre - (T[:, :3, :3] @ source_centre[..., None])[..., 0]
    return T


def _scores(motions: np.ndarray, p: np.ndarray, q: np.ndarray, distance: float) -> np.ndarray:
    """The MSAC scores (H,) of motions (H, 4, 4) over the matches p (P, 3), q (P, 3)."""
    R, t = motions[:, :3, :3].astype(np.float32), motions[:, :3, 3].astype(np.float32)
    p, q = p.T.astype(np.float32), q.T.astype(np.float32)  # (3, P)
    P = p.shape[1]
    scores = np.empty(len(R), dtype=np.float32)
    size = max(1, BLOCK // (3 * P))
    for start in range(0, len(R), size):
        block = slice(start, start + size)
        residuals = (R[block].reshape(-1, 3) @ p).reshape(-1, 3, P)  # (H', 3, P)
        residuals += t[block, :, None]
        residuals -= q
        squares = np.einsum("hcp,hcp->hp", residuals, residuals)
        scores[block] = np.maximum(1 - squares / distance**2, 0).sum(1)
    return scores


def _inliers(T: np.ndarray, p: np.ndarray, q: np.ndarray, distance: float) -> np.ndarray:
    return np.linalg.norm(transform(T, p) - q, axis=1) < distance


def _samples_needed(inlier_ratio: float, n: int, confidence: float) -> float:
    """How many samples of n hold one without outliers with probability `confidence`."""
    clean = inlier_ratio**n
    if clean == 0.0 or confidence >= 1.0:
        return math.inf
    return 1 if clean == 1.0 else math.ceil(math.log1p(-confidence) / math.log1p(-clean))


def _refit(T: np.ndarray, p: np.ndarray, q: np.ndarray, distance: float) -> np.ndarray:
    """Fit to all inliers of T instead of one sample, again and again while the score grows."""
    score = _scores(T[None], p, q, distance)[0]
    while True:
        inliers = _inliers(T, p, q, distance)
        T_refit = procrustes(p[inliers], q[inliers])
        refit_score = _scores(T_refit[None], p, q, distance)[0]
        if refit_score <= score:
            return T
        T, score = T_refit, refit_score


def _refitted(motions: np.ndarray, source: np.ndarray, target: np.ndarray, distance: float) -> np.ndarray:
    """The motions (H, 4, 4), each refitted to its inliers, best first."""
    if len(motions) == 0:
        return motions
    motions = np.stack([_refit(T, source, target, distance) for T in motions])
    return motions[np.argsort(-_scores(motions, source, target, distance), kind="stable")]


def _distinct(motions: np.ndarray, points: np.ndarray, apart: float, most: int) -> np.ndarray:
    """Of motions (H, 4, 4), best first, at most so many, each `apart` metres from every better one kept."""
    left, kept = np.ones(len(motions), dtype=bool), []
    while left.any() and len(kept) < most:
        kept.append(int(np.argmax(left)))
        left &= _max_displacements(motions, motions[kept[-1]], points) >= apart
    return motions[kept]


def _max_displacements(motions: np.ndarray, T: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far (H,) motions (H, 4, 4) move points (P, 3) from where T does: root mean squares, metres."""
    probes = points[np.linspace(0, len(points) - 1, PROBES).astype(int)]
    difference = motions - T
    moved = probes @ difference[:, :3, :3].transpose(0, 2, 1) + difference[:, None, :3, 3]  # (H, PROBES, 3)
    return np.sqrt((moved**2).sum(2).mean(1))


def _merits(motions: np.ndarray, source: np.ndarray, target: np.ndarray, distance: float) -> np.ndarray:
    """What speaks for each motion: the scores (H,) of the matches, and of source points on target points.

    The latter are of a part of the points, and count as if all had been asked.
    """
    tree, judges = KDTree(target), source[:: -(-len(source) // MAX_SCORED_POINTS)]

    def closeness(T: np.ndarray) -> float:
        distances, _ = tree.query(transform(T, judges), distance_upper_bound=distance)  # inf beyond
        return (1 - np.minimum(distances / distance, 1) ** 2).mean()

    return _scores(motions, source, target, distance) + len(source) * np.array(
        [closeness(T) for T in motions]
    )
