import numpy as np

from pcreg.mapping.graph import components
from pcreg.mapping.proposal import MIN_PROBABILITY, probability_of, propose
from tests.pcreg.mapping.edges import edge


def certain(n: int) -> np.ndarray:
    return np.ones((n, n)) - np.eye(n)


def joined(n: int, *pairs: tuple[int, int]) -> np.ndarray:
    conductance = np.zeros((n, n))
    for a, b in pairs:
        conductance[a, b] = conductance[b, a] = 1.0
    return conductance


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


def test_more_agreement_promises_more_and_each_scan_gets_a_chance():
    inliers = np.zeros((8, 8), dtype=np.int64)
    inliers[0, 1:] = inliers[1:, 0] = [100, 33, 20, 6, 5, 4, 0]
    promise = probability_of(inliers)
    np.testing.assert_array_equal(promise, promise.T)
    np.testing.assert_allclose(promise[0, 2], 0.5)
    assert (np.diff(promise[0, 1:]) <= 0).all()
    np.testing.assert_allclose(promise[0, 4:7], MIN_PROBABILITY)  # the only one that agrees with them at all
    assert promise[0, 7] < 1e-6
    assert promise[3, 4] < 1e-6
