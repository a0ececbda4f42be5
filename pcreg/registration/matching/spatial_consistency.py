"""Motions from matches with very few inliers, by the consistency of distances.

A rigid motion keeps distances, so any two right matches agree: their points are as far from each other in
one cloud as in the other. Two wrong matches agree by chance, and then seldom is there a third match with
which both agree. So pairs are ranked by how many matches agree with both (second-order spatial compatibility;
SC2-PCR, Chen et al., CVPR 2022). If one match in fifty is right, one random sample of three in 125,000 is.
"""

import numpy as np

from pcreg.arrays import Array, is_on_host, like, namespace, to_host
from pcreg.geometry.se3 import procrustes
from pcreg.registration.matching.prior import ANY, VERTICAL_SLACK, Prior
from pcreg.runtime import parallel

MIN_MATCHES = 3  # that determine a motion
MAX_SEEDS = 300  # matches, around each of which a group of consistent ones is formed
MAX_GROUP = 20  # matches from which a motion is computed, beside the seed
MIN_EDGE_DISTANCES = 2.0  # matches of closer points agree under any motion
POWER_ITERATIONS = 10
BLOCK_ROWS = 64  # of matches, compared with all others at a time, in arrays that fit the cache
BLOCK_COLUMNS = 512  # of other matches: BLAS then copies each part of the larger factor only once


def consistent_motions(source: Array, target: Array, distance: float, prior: Prior = ANY) -> np.ndarray:
    """Motions (H, 4, 4), at most 300, each from one of the matches and up to 20 that are consistent with it.

    Source (P, 3) and target (P, 3) are matched row by row. Two matches agree if the distances of their points
    differ by less than `distance` metres and, where a `prior` says what is up, so do those of their heights.
    Memory and time grow with the square of P.
    """
    if len(source) < MIN_MATCHES:
        return np.empty((0, 4, 4))
    xp = namespace(source)
    agree = _agreement(source, target, distance, prior)
    seeds = _seeds(agree)
    group = _largest(_shared(agree, seeds), min(MAX_GROUP, len(source) - 1))
    group = xp.concat([seeds[:, None], group], axis=1)
    within = agree[group[:, :, None], group[:, None]]
    weights = _leading_eigenvector(within * (within @ within))
    group, weights, source, target = (to_host(each) for each in (group, weights, source, target))
    usable = np.count_nonzero(weights > 0, axis=1) >= MIN_MATCHES
    group, weights = group[usable], weights[usable]
    motions = procrustes(source[group], target[group], weights)
    return motions[prior.allows(motions, distance)]


def _agreement(source: Array, target: Array, distance: float, prior: Prior) -> Array:
    """1 where two matches agree, else 0: (P, P) float32."""
    xp, P = namespace(source), len(source)
    sides = [xp.astype(side - xp.mean(side, axis=0), xp.float32) for side in (source, target)]
    rises = prior.rises(source, target)
    rises = None if rises is None else xp.astype(rises, xp.float32)
    agree = xp.empty((P, P), dtype=xp.float32, device=source.device)
    size = BLOCK_ROWS if is_on_host(source) else P

    def fill(start: int) -> None:
        rows = slice(start, start + size)
        in_source, in_target = (_distances(side[rows], side) for side in sides)
        found = xp.minimum(in_source, in_target) > MIN_EDGE_DISTANCES * distance
        found &= xp.abs(in_source - in_target) < distance
        if rises is not None:
            found &= xp.abs(rises[rows, None] - rises) < distance + VERTICAL_SLACK * in_source
        agree[rows] = found

    parallel.each(fill, range(0, P, size))
    return agree


def _shared(agree: Array, seeds: Array) -> Array:
    """Numbers (S, P) of matches that agree with both a seed and a match; 0 where these two disagree."""
    own, P = agree[seeds], len(agree)
    size = BLOCK_COLUMNS if is_on_host(agree) else P

    def block(start: int) -> Array:
        columns = slice(start, start + size)
        return own[:, columns] * (own @ agree[:, columns])

    return namespace(agree).concat(parallel.each(block, range(0, P, size)), axis=1)


def _largest(rows: Array, count: int) -> Array:
    """Columns (S, count) of the largest entries of each row (S, P)."""
    if is_on_host(rows):
        return np.argpartition(-rows, count - 1, axis=1)[:, :count]
    return rows.topk(count, dim=1).indices


def _distances(some: Array, points: Array) -> Array:
    """Between points (S, 3) and (P, 3) float32: (S, P)."""
    xp = namespace(points)
    squared = some @ points.T
    squared *= -2
    squared += xp.sum(some**2, axis=1)[:, None]
    squared += xp.sum(points**2, axis=1)
    return xp.sqrt(xp.maximum(squared, 0.0))


def _seeds(agree: Array) -> Array:
    """Rows (S,) of matches, ascending: the likeliest by the leading eigenvector, and evenly spaced ones."""
    xp, P = namespace(agree), len(agree)
    half, likelihood = MAX_SEEDS // 2, _leading_eigenvector(agree[None])[0]
    likeliest = xp.argsort(likelihood, descending=True, stable=True)[:half]
    everywhere = like(np.linspace(0, P - 1, min(half, P)).astype(int), agree)
    return xp.unique_values(xp.concat([likeliest, everywhere]))


def _leading_eigenvector(matrices: Array) -> Array:
    """Leading eigenvectors (S, P) of symmetric matrices (S, P, P) without negative entries, by iteration."""
    xp = namespace(matrices)
    vectors = xp.ones_like(matrices[..., 0])
    for _ in range(POWER_ITERATIONS):
        vectors = (matrices @ vectors[..., None])[..., 0]
        norms = xp.linalg.vector_norm(vectors, axis=1, keepdims=True)
        vectors = vectors / xp.maximum(norms, 1e-9)
    return vectors
