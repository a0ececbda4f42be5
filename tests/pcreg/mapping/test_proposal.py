"""The choice of pairs to screen and to register."""

import numpy as np

from pcreg.mapping.graph import components
from pcreg.mapping.proposal import CANDIDATES, MAX_SCANS, MIN_PROBABILITY, Retrieval, probability_of, propose
from pcreg.registration.matching.screening import Keypoints
from tests.pcreg.mapping.edges import edge

GROUPS = 6


def keypoints(n: int) -> list[Keypoints]:
    """Scans in groups, by number; descriptors of a group have centres of their own."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((GROUPS, 8, 16))
    made = []
    for row in range(n):
        features = centres[row % GROUPS][rng.integers(8, size=60)] + 0.3 * rng.standard_normal((60, 16))
        made.append(Keypoints(np.zeros((60, 3), np.float32), features.astype(np.float32), 0.05))
    return made


def test_few_scans_are_compared_each_with_each():
    assert Retrieval(keypoints(4)).candidates() == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


def test_of_many_those_that_are_alike():
    n = MAX_SCANS + 26  # 21 in each group
    pairs = np.array(Retrieval(keypoints(n)).candidates())
    assert (pairs[:, 0] > pairs[:, 1]).all()
    assert len(pairs) <= n * CANDIDATES
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] % GROUPS == pairs[:, 1] % GROUPS).mean() > 0.99


def test_then_those_that_agree_with_a_third():
    inliers, screened = np.zeros((5, 5), dtype=np.int64), np.zeros((5, 5), dtype=bool)
    for a, b, count in ((1, 0, 60), (2, 1, 60), (3, 2, 10), (4, 1, 60)):
        inliers[a, b] = inliers[b, a] = count
        screened[a, b] = screened[b, a] = True
    screened[4, 0] = screened[0, 4] = True
    assert Retrieval(keypoints(5)).partners_of_partners(inliers, screened) == [(2, 0), (4, 2)]


def test_then_those_of_maps_that_agree():
    """Two of three maps of one group agree; their similar scans are compared if they were not."""
    n = MAX_SCANS + 26
    retrieval = Retrieval(keypoints(n))
    component = np.arange(n) % GROUPS
    component[90::GROUPS] = GROUPS  # a part of the first group
    inliers, screened = np.zeros((n, n), dtype=np.int64), np.zeros((n, n), dtype=bool)
    inliers[90, 0] = inliers[0, 90] = 7
    screened[90, :6] = screened[:6, 90] = True
    pairs = retrieval.further_candidates(component, inliers, screened)
    assert pairs == sorted(
        (source, target)
        for source in range(90, n, GROUPS)
        for target in range(0, 90, GROUPS)
        if (source, target) != (90, 0)
    )
    assert retrieval.further_candidates(component, inliers, np.ones((n, n), dtype=bool)) == []
    assert retrieval.further_candidates(component, 0 * inliers, screened) == []


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
