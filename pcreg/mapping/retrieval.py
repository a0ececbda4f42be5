"""Which scans to compare where they are too many to compare each with each: those described alike.

A scan is described as a whole by its descriptors, summed up around common centres (VLAD; Jegou et al., CVPR
2010). Work grows with the number of scans times the number of candidates of each.
"""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.vq import kmeans2

from pcreg.geometry.subsample import every_nth
from pcreg.mapping.screening import Sketch

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 20  # of a scan otherwise; of pairs of simulated rooms that register 97 % are among 10
CENTRES = 16
MAX_LEARNED_SCANS, MAX_LEARNED_FEATURES = 200, 500  # of each: what the centres are learned from
ITERATIONS = 10


def candidates(sketches: Sequence[Sketch]) -> list[tuple[int, int]]:
    """The pairs of scans (source, target) to screen, source > target, ascending."""
    n = len(sketches)
    if n <= MAX_SCANS:
        return [(source, target) for source in range(n) for target in range(source)]
    whole = global_descriptors(sketches)
    likeness = whole @ whole.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = np.argpartition(-likeness, CANDIDATES, axis=1)[:, :CANDIDATES]
    pairs = {(max(row, other), min(row, other)) for row in range(n) for other in nearest[row].tolist()}
    return sorted(pairs)


def global_descriptors(sketches: Sequence[Sketch]) -> np.ndarray:
    """A unit vector for each scan, (n, CENTRES * C) float32, less what all scans have in common."""
    learned = every_nth(np.arange(len(sketches)), MAX_LEARNED_SCANS)
    features = [every_nth(sketches[row].features, MAX_LEARNED_FEATURES) for row in learned]
    rng = np.random.default_rng(0)
    centres, _ = kmeans2(np.concatenate(features), CENTRES, ITERATIONS, minit="++", rng=rng)
    whole = _unit(np.stack([_vlad(sketch.features, centres) for sketch in sketches]))
    return _unit(whole - whole.mean(0))


def _vlad(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The sums of what features (N, C) differ by from their nearest of the centres, (CENTRES * C,)."""
    nearest = (features @ centres.T - (centres**2).sum(1) / 2).argmax(1)
    sums = np.stack([(features[nearest == k] - centre).sum(0) for k, centre in enumerate(centres)])
    whole = _unit(sums).ravel()
    return np.sign(whole) * np.sqrt(np.abs(whole))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
