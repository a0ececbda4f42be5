"""The choice of pairs to screen and to register."""

import numpy as np
from scipy.sparse import csr_array

from pcreg.mapping.graph import components
from pcreg.mapping.proposal import (
    BLOCK,
    CANDIDATES,
    LEAK,
    MAX_SCANS,
    MIN_PROBABILITY,
    Values,
    candidates,
    matrix,
    partners_of_partners,
    probability_of,
    propose,
)
from pcreg.registration.matching.screening import Keypoints
from tests.pcreg.mapping.edges import edge

GROUPS, WORDS = 6, 200


def both(values: Values) -> Values:
    """The values of pairs, for both orders of a pair."""
    return values | {pair[::-1]: value for pair, value in values.items()}


def keypoints(n: int) -> list[Keypoints]:
    """Scans in GROUPS groups, by row; each group has its own variant of the common descriptors."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((WORDS, 16)) + 0.5 * rng.standard_normal((GROUPS, WORDS, 16))
    made = []
    for row in range(n):
        features = centres[row % GROUPS][rng.integers(WORDS, size=WORDS)]
        features += 0.3 * rng.standard_normal(features.shape)
        made.append(Keypoints(np.zeros((WORDS, 3), np.float32), features.astype(np.float32), 0.05))
    return made


def test_few_scans_are_compared_each_with_each():
    assert candidates(keypoints(4)) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


def test_of_many_those_that_are_alike():
    n = MAX_SCANS + 26  # 21 in each group
    pairs = np.array(candidates(keypoints(n)))
    assert (pairs[:, 0] > pairs[:, 1]).all()
    assert len(pairs) <= n * CANDIDATES
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] % GROUPS == pairs[:, 1] % GROUPS).mean() > 0.99


def test_then_those_that_agree_with_a_third():
    inliers = both({(1, 0): 60, (2, 1): 60, (3, 2): 10, (4, 1): 60, (4, 0): 0})
    assert partners_of_partners(5, inliers) == [(2, 0), (4, 2)]


def certain(n: int) -> csr_array:
    return csr_array(np.ones((n, n)) - np.eye(n))


def joined(n: int, *pairs: tuple[int, int]) -> csr_array:
    return matrix(n, both(dict.fromkeys(pairs, 1.0)))


def test_a_spanning_tree_comes_first():
    chosen = propose(certain(7), joined(7), 6)
    assert all(source > target for source, target in chosen)
    assert components(7, [edge(source, target, np.eye(4)) for source, target in chosen]).max() == 0


def test_then_the_longest_loop_of_a_chain_is_closed():
    chain = joined(6, *((n, n + 1) for n in range(5)))
    assert propose(certain(6), chain, 1) == [(5, 0)]


def test_nothing_is_left_where_all_is_well_determined():
    complete = joined(9, *((a, b) for a in range(9) for b in range(a)))
    assert propose(certain(9), complete, 5) == []


def test_each_pair_has_the_largest_gain_after_those_before():
    """Scans and pairs need several blocks of the solver; chosen pairs conduct by their probability."""
    n, count = 3 * BLOCK, 2 * BLOCK
    rng = np.random.default_rng(0)
    likely = {(a, b): rng.uniform(0.1, 1) for a, b in rng.integers(n, size=(10 * n, 2)).tolist() if a > b}
    conductance = joined(n, *((row, row + 1) for row in range(0, n - 1, 2)))
    chosen = propose(matrix(n, both(likely)), conductance, count)
    assert len(set(chosen)) == count
    a, b = np.array(list(likely)).T
    for pair in chosen:
        inverse = np.linalg.inv(np.diag(conductance.sum(1) + LEAK) - conductance.toarray())
        gain = np.array(list(likely.values())) * (inverse[a, a] + inverse[b, b] - 2 * inverse[a, b])
        assert likely[pair] > 0
        assert gain[list(likely).index(pair)] > gain.max() - 1e-9
        conductance += matrix(n, both({pair: likely[pair]}))
        likely[pair] = 0.0


def test_more_agreement_promises_more_and_each_scan_gets_a_chance():
    counts = enumerate([100, 33, 20, 6, 5, 4, 0], start=1)
    promise = probability_of(matrix(8, both({(row, 0): count for row, count in counts}))).toarray()
    np.testing.assert_array_equal(promise, promise.T)
    np.testing.assert_allclose(promise[0, 2], 0.5)
    assert (np.diff(promise[0, 1:]) <= 0).all()
    np.testing.assert_allclose(promise[0, 4:7], MIN_PROBABILITY)  # the only one that agrees with them at all
    assert promise[0, 7] < 1e-6
    assert promise[3, 4] < 1e-6
