"""Choice of the pairs of scans to screen and to register, and of the pairs of maps to compare.

Screening grows with the number of scans times the number of candidates of each.

Registered next are the pairs with the largest expected gain for the pose graph: the probability that a pair
registers times the effective resistance between its scans in the graph of the edges so far, each of which
conducts by its confidence (Klein and Randic, 1993). The resistance is large between scans that no path joins,
about the number of steps along a chain, and small where many paths agree. So a spanning tree comes first,
then the pairs that close long loops, and where all is well determined nothing is left to do.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

from pcreg.registration.matching.global_descriptor import GlobalDescriptor
from pcreg.registration.matching.screening import Keypoints
from pcreg.runtime import cached_property

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 20  # of a scan otherwise; of pairs of simulated rooms that register 97 % are among 10
MAX_TARGETS = 3  # maps with which one is compared
LEAK = 0.1  # conductance of each scan to the ground: scans that no path joins have a resistance, too
MIN_GAIN = 0.25  # of a pair that is worth the time: the resistance of a scan that eight others fix
# Of screened pairs of simulated rooms 14 % register with 16 to 25 agreeing matches, 23 % with up to 32, 62 %
# with up to 45, and all with more.
HALF_INLIERS = 33.0
STEEPNESS = 6.0
# Each scan is tried with the scans that it agrees with most, however little that is
MAX_CHANCES = 8
MIN_PROBABILITY = 0.03


@dataclass(frozen=True)
class Retrieval:
    """Pairs of scans (source, target) to screen, source > target, ascending."""

    keypoints: Sequence[Keypoints]

    @cached_property
    def likeness(self) -> np.ndarray:
        """Similarity of the global descriptors of each two scans, (n, n)."""
        described = GlobalDescriptor.learned(self.keypoints)
        whole = np.stack([described.describe(keypoints) for keypoints in self.keypoints])
        return whole @ whole.T

    def candidates(self) -> list[tuple[int, int]]:
        """Each scan with those most like it; with all of them if the scans are few."""
        n = len(self.keypoints)
        if n <= MAX_SCANS:
            return list(zip(*(rows.tolist() for rows in np.tril_indices(n, -1)), strict=True))
        rows = np.arange(n)
        return sorted({pair for row in rows for pair in self._most_alike(row, np.delete(rows, row))})

    def partners_of_partners(self, inliers: np.ndarray, screened: np.ndarray) -> list[tuple[int, int]]:
        """Pairs not `screened` (n, n) of scans that agree with a third by `inliers` (n, n)."""
        agree = csr_array(inliers >= HALF_INLIERS).astype(np.int64)
        rows, columns = (agree @ agree).nonzero()
        left = (rows > columns) & ~screened[rows, columns]
        return sorted(zip(rows[left].tolist(), columns[left].tolist(), strict=True))

    def further_candidates(
        self, component: np.ndarray, inliers: np.ndarray, screened: np.ndarray
    ) -> list[tuple[int, int]]:
        """Pairs that were not `screened` (n, n), between maps that may belong together.

        Two parts of a place may overlap in one pair of scans alone, which likeness among all scans misses.
        `component` (n,) is the map of each scan, `inliers` (n, n) the agreeing matches at screening.
        """
        chosen = set()
        for smaller, larger in map_pairs(component, inliers):
            others = np.flatnonzero(component == larger)
            for row in np.flatnonzero(component == smaller):
                chosen |= self._most_alike(row, others[~screened[row, others]])
        return sorted(chosen)

    def _most_alike(self, row: int, others: np.ndarray) -> set[tuple[int, int]]:
        """Pairs of a scan with those of the others (K,) that are most like it."""
        best = others[np.argsort(-self.likeness[row, others], kind="stable")[:CANDIDATES]]
        return {(max(int(row), other), min(int(row), other)) for other in best.tolist()}


def map_pairs(component: np.ndarray, inliers: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of maps (smaller, larger), larger ones first, by matches (n, n) of scans in `component` (n,)."""
    order = np.argsort(-np.bincount(component), kind="stable")
    place = np.argsort(order)
    agree: dict[int, dict[int, int]] = defaultdict(dict)
    rows, columns = np.nonzero(inliers)
    ends = component[rows], component[columns], inliers[rows, columns]
    for smaller, larger, count in zip(*(each.tolist() for each in ends), strict=True):
        if place[smaller] > place[larger]:
            agree[smaller][larger] = max(count, agree[smaller].get(larger, 0))
    return [
        (smaller, larger)
        for smaller in order.tolist()
        for larger in sorted(agree[smaller], key=lambda each: (-agree[smaller][each], each))[:MAX_TARGETS]
    ]


def propose(
    probability: np.ndarray, conductance: np.ndarray | csr_array, count: int
) -> list[tuple[int, int]]:
    """Up to `count` pairs of scans (source, target) to register next, source > target, best first.

    `probability` (n, n), symmetric, that a pair registers; 0 for pairs that are not to be tried.
    `conductance` (n, n), symmetric, of the edges so far.
    """
    conductance = csr_array(conductance)
    laplacian = diags_array(conductance.sum(1) + LEAK) - conductance
    inverse = splu(laplacian.tocsc()).solve(np.eye(len(probability)))
    a, b = np.nonzero(np.tril(probability >= MIN_GAIN * LEAK / 2, -1))  # no resistance exceeds 2 / LEAK
    left = probability[a, b]
    resistance = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
    chosen: list[tuple[int, int]] = []
    between, shrunk = np.empty((count, len(inverse))), np.empty(count)  # of the inverse by each chosen pair
    while len(a) and len(chosen) < count:
        best, k = int((left * resistance).argmax()), len(chosen)
        if left[best] * resistance[best] < MIN_GAIN:
            break
        ends = a[best], b[best]
        chosen.append((int(a[best]), int(b[best])))
        earlier = shrunk[:k] * (between[:k, ends[0]] - between[:k, ends[1]])
        between[k] = inverse[ends[0]] - inverse[ends[1]] - earlier @ between[:k]
        shrunk[k] = left[best] / (1 + left[best] * resistance[best])  # as if it conducted by its probability
        resistance -= shrunk[k] * (between[k, a] - between[k, b]) ** 2
        left[best] = 0
    return chosen


def probability_of(inliers: np.ndarray) -> np.ndarray:
    """Probability that pairs register, by the agreeing matches (n, n) at screening: (n, n), symmetric."""
    probability = 1 / (1 + (HALF_INLIERS / np.maximum(inliers, 1)) ** STEEPNESS)
    best = np.argpartition(-inliers, min(MAX_CHANCES, len(inliers) - 1), axis=1)[:, :MAX_CHANCES]
    chances = np.zeros_like(probability)
    np.put_along_axis(chances, best, MIN_PROBABILITY, axis=1)
    chances[inliers == 0] = 0
    return np.maximum(probability, np.maximum(chances, chances.T))
