"""Motions from matches of which very few are right, found by what they have in common: distances.

A rigid motion keeps distances, so any two right matches agree: their points are as far from each other in
one cloud as in the other. Two wrong ones agree by chance, and then seldom have a third in common with which
both agree. So pairs are ranked by how many matches agree with both (second-order spatial compatibility;
SC2-PCR, Chen et al., CVPR 2022). Where one match in fifty is right one sample of three in 125,000 is.
"""

import numpy as np

from pcreg.geometry.se3 import procrustes
from pcreg.registration.matching.prior import ANY, VERTICAL_SLACK, Prior
from pcreg.runtime import parallel

MIN_MATCHES = 3  # that determine a motion
MAX_SEEDS = 300  # matches, each with those that it shares most with
MAX_GROUP = 20  # matches from which a motion is computed, beside the seed
MIN_EDGE_DISTANCES = 2.0  # points closer than that agree whatever the motion
POWER_ITERATIONS = 10
BLOCK_ROWS = 64  # of matches, compared with all others at a time, in arrays that fit the cache
BLOCK_COLUMNS = 512  # of other matches: BLAS copies the larger factor of a product, here once in all


def consistent_motions(
    source: np.ndarray, target: np.ndarray, distance: float, prior: Prior = ANY
) -> np.ndarray:
    """Motions (H, 4, 4), at most 300, each from one of the matches and up to 20 that are consistent with it.

    Source (P, 3) and target (P, 3) are matched row by row. Two matches agree if the distances of their points
    differ by less than `distance` metres and, where a `prior` says what is up, so do those of their heights.
    Memory and time grow with the square of P.
    """
    if len(source) < MIN_MATCHES:
        return np.empty((0, 4, 4))
    agree = _agreement(source, target, distance, prior)
    seeds = _seeds(agree)
    shared = _shared(agree, seeds)
    group = np.argpartition(-shared, min(MAX_GROUP, len(source) - 1) - 1, axis=1)[:, :MAX_GROUP]
    group = np.concatenate([seeds[:, None], group], axis=1)
    within = agree[group[:, :, None], group[:, None]]
    weights = _leading_eigenvector(within * (within @ within))
    usable = (weights > 0).sum(1) >= MIN_MATCHES
    group, weights = group[usable], weights[usable]
    motions = procrustes(source[group], target[group], weights)
    return motions[prior.allows(motions, distance)]


def _agreement(source: np.ndarray, target: np.ndarray, distance: float, prior: Prior) -> np.ndarray:
    """1 where two matches agree, else 0: (P, P) float32."""
    sides = [(side - side.mean(0)).astype(np.float32) for side in (source, target)]
    raised = prior.heights_differ(source, target)
    raised = None if raised is None else raised.astype(np.float32)
    agree = np.empty((len(source), len(source)), dtype=np.float32)

    def fill(start: int) -> None:
        rows = slice(start, start + BLOCK_ROWS)
        in_source, in_target = (_distances(side[rows], side) for side in sides)
        found = np.minimum(in_source, in_target) > MIN_EDGE_DISTANCES * distance
        found &= np.abs(in_source - in_target) < distance
        if raised is not None:
            found &= np.abs(raised[rows, None] - raised) < distance + VERTICAL_SLACK * in_source
        agree[rows] = found

    parallel.each(fill, range(0, len(source), BLOCK_ROWS))
    return agree


def _shared(agree: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """How many matches agree with a seed and with another one, if these two agree: (S, P) float32, exact."""
    own = agree[seeds]

    def of(start: int) -> np.ndarray:
        columns = slice(start, start + BLOCK_COLUMNS)
        return own[:, columns] * (own @ agree[:, columns])

    return np.concatenate(parallel.each(of, range(0, len(agree), BLOCK_COLUMNS)), axis=1)


def _distances(some: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Between points (S, 3) and (P, 3) float32: (S, P)."""
    squared = some @ points.T
    squared *= -2
    squared += (some**2).sum(1)[:, None]
    squared += (points**2).sum(1)
    return np.sqrt(np.maximum(squared, 0, out=squared), out=squared)


def _seeds(agree: np.ndarray) -> np.ndarray:
    """Rows (S,) of matches, ascending: the likeliest and some from everywhere.

    Likely are those with a large entry in the leading eigenvector (Leordeanu and Hebert, ICCV 2005). It knows
    one set of consistent matches, and where the clouds repeat themselves that need not be the right one.
    """
    P = len(agree)
    likeliest = np.argsort(-_leading_eigenvector(agree[None])[0], kind="stable")[: MAX_SEEDS // 2]
    everywhere = np.linspace(0, P - 1, min(MAX_SEEDS // 2, P)).astype(int)
    return np.unique(np.concatenate([likeliest, everywhere]))


def _leading_eigenvector(matrices: np.ndarray) -> np.ndarray:
    """Of each symmetric matrix (S, P, P) without negative entries: (S, P), by power iteration."""
    vectors = np.ones(matrices.shape[:2], dtype=np.float32)
    for _ in range(POWER_ITERATIONS):
        vectors = (matrices @ vectors[..., None])[..., 0]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return vectors
