import numpy as np

from pcreg.mapping.proposal import CANDIDATES, MAX_SCANS, Retrieval
from pcreg.registration.matching.screening import Keypoints

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
