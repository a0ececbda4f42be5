import numpy as np

from pcreg.mapping.graph import components
from pcreg.mapping.proposal import probability_of, propose
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


def test_a_pair_that_promises_nothing_is_left_out():
    promise = certain(4)
    promise[3, :3] = promise[:3, 3] = 1e-3
    chosen = propose(promise, joined(4), 10)
    assert chosen
    assert 3 not in np.ravel(chosen)


def test_more_agreement_promises_more():
    promise = probability_of(np.array([0, 5, 33, 100]))
    np.testing.assert_allclose(promise[[0, 2]], [0, 0.5], atol=1e-6)
    assert (np.diff(promise) > 0).all()
