"""Choice of pairs of scans to screen and to register, and of maps to compare.

The time of screening grows with the number of scans times the number of candidates of each.

Pairs with the largest expected gain for the pose graph are registered next. The gain is the probability that
a pair registers times the effective resistance between its scans, in the graph of the edges so far, whose
conductances are their confidences (Klein and Randic, 1993). The resistance is large between scans that no
path connects, about the number of steps along a chain, and small where many paths agree. So a spanning tree
comes first, then the pairs that close long loops; where all poses are well determined none are left.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array, find, tril
from scipy.sparse.linalg import SuperLU

from pcreg.mapping.graph import factored
from pcreg.registration.matching.global_descriptor import GlobalDescriptor
from pcreg.registration.matching.screening import Keypoints
from pcreg.runtime import parallel

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 15  # of a scan otherwise
PARTNER_ROUNDS = 2  # more find 0.4 % more of the pairs that overlap by over 30 %
MAX_TARGETS = 3  # larger maps with which a map is compared
# Conductance of each scan to the ground: scans that no path joins have a resistance, too. It is small, so
# that even unlikely pairs between two maps of ten scans are worth the time.
LEAK = 0.01
MIN_GAIN = 0.25  # of a pair that is worth the time: the resistance of a scan that eight others fix
# Of screened pairs of simulated rooms 14 % register with 16 to 25 agreeing matches, 23 % with up to 32, 62 %
# with up to 45, and all with more.
HALF_INLIERS = 33.0
STEEPNESS = 6.0
# Each scan is tried with the scans with which it has most agreeing matches, even if these are few
MAX_CHANCES = 8
MIN_PROBABILITY = 0.03
BLOCK = 64  # columns of the inverse at a time, and chosen pairs between two factorisations
# A number for each pair of scans, under (a, b) and (b, a)
Values = dict[tuple[int, int], float]


@parallel.one_for_blas()
def candidates(keypoints: Sequence[Keypoints]) -> list[tuple[int, int]]:
    """Pairs of scans (source, target), source > target, ascending, that are most alike; of few scans all."""
    n = len(keypoints)
    if n <= MAX_SCANS:
        return list(zip(*(rows.tolist() for rows in np.tril_indices(n, -1)), strict=True))
    whole = GlobalDescriptor.learned(keypoints).whole
    similarity = whole @ whole.T
    np.fill_diagonal(similarity, -np.inf)
    best = [np.argsort(-row, kind="stable")[:CANDIDATES].tolist() for row in similarity]
    return sorted({(max(row, other), min(row, other)) for row, others in enumerate(best) for other in others})


def partners_of_partners(n: int, inliers: Values) -> list[tuple[int, int]]:
    """Pairs of n scans (source, target) not in `inliers`, of scans that agree with a third."""
    agree = matrix(n, inliers) >= HALF_INLIERS
    rows, columns = (agree.astype(np.int64) @ agree).nonzero()
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return sorted((row, column) for row, column in pairs if row > column and (row, column) not in inliers)


def matrix(n: int, values: Values) -> csr_array:
    """The values of pairs of n scans, (n, n)."""
    ends = np.array(list(values), dtype=np.int32).reshape(-1, 2)
    return csr_array((np.array(list(values.values())), tuple(ends.T)), shape=(n, n))


def map_pairs(component: np.ndarray, inliers: Values) -> list[tuple[int, int]]:
    """Pairs of maps (smaller, larger), larger ones first, by matches of scans in `component` (n,)."""
    order = np.argsort(-np.bincount(component), kind="stable")
    place = np.argsort(order)
    agree: dict[int, dict[int, int]] = defaultdict(dict)
    for (one, other), count in inliers.items():
        smaller, larger = int(component[one]), int(component[other])
        if count and place[smaller] > place[larger]:
            agree[smaller][larger] = max(count, agree[smaller].get(larger, 0))
    return [
        (smaller, larger)
        for smaller in order.tolist()
        for larger in sorted(agree[smaller], key=lambda each: (-agree[smaller][each], each))[:MAX_TARGETS]
    ]


def propose(probability: csr_array, conductance: csr_array, count: int) -> list[tuple[int, int]]:
    """Up to `count` pairs (source, target) to register next, source > target, best first.

    `probability` (n, n), symmetric, is that of a pair to register, without entries for pairs that are not to
    be tried. `conductance` (n, n), symmetric, is that of the edges so far. Memory grows with their entries.
    """
    n = conductance.shape[0]
    a, b, left = find(tril(probability, -1))
    likely = left >= MIN_GAIN * LEAK / 2  # no resistance exceeds 2 / LEAK
    a, b, left = a[likely], b[likely], left[likely]
    resistance = _resistances(_factored(conductance), a, b)
    chosen: list[tuple[int, int]] = []
    added: Values = {}  # conductances of the chosen pairs: their probabilities
    # A further pair changes the inverse by -factor * outer(row, row) (Sherman and Morrison)
    rows, factors = np.empty((BLOCK, n)), np.empty(BLOCK)
    while len(a) and len(chosen) < count:
        best, k = int((left * resistance).argmax()), len(chosen) % BLOCK
        if left[best] * resistance[best] < MIN_GAIN:
            break
        if k == 0:
            solver = _factored(conductance + matrix(n, added))
        source, target = int(a[best]), int(b[best])
        chosen.append((source, target))
        added[source, target] = added[target, source] = left[best]
        unit = np.zeros(n)
        unit[[source, target]] = 1, -1
        earlier = factors[:k] * (rows[:k, source] - rows[:k, target])
        rows[k] = solver.solve(unit) - earlier @ rows[:k]
        factors[k] = left[best] / (1 + left[best] * resistance[best])
        resistance -= factors[k] * (rows[k, a] - rows[k, b]) ** 2
        left[best] = 0
    return chosen


def _factored(conductance: csr_array) -> SuperLU:
    return factored(diags_array(conductance.sum(1) + LEAK) - conductance)


def _resistances(factor: SuperLU, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Effective resistances (P,) between scans a (P,) and b (P,), a block of the inverse at a time."""
    n = factor.shape[0]
    own, mutual = np.empty(n), np.empty(len(a))
    for start in range(0, n, BLOCK):
        inverse = factor.solve(np.eye(n, min(BLOCK, n - start), -start))
        own[start : start + BLOCK] = inverse[start : start + BLOCK].diagonal()
        here = (start <= b) & (b < start + BLOCK)
        mutual[here] = inverse[a[here], b[here] - start]
    return own[a] + own[b] - 2 * mutual


def probability_of(inliers: csr_array) -> csr_array:
    """Probability that pairs register, by the agreeing matches (n, n) at screening: (n, n), symmetric."""
    rows, columns, counts = find(inliers)
    order = np.lexsort((-counts, rows))
    place = np.arange(len(order)) - np.searchsorted(rows[order], rows[order])  # in its row
    least = np.where(place < MAX_CHANCES, MIN_PROBABILITY, 0)[np.argsort(order)]
    promise = np.maximum(1 / (1 + (HALF_INLIERS / counts) ** STEEPNESS), least)
    found = csr_array((promise, (rows, columns)), shape=inliers.shape)
    return found.maximum(found.T)
