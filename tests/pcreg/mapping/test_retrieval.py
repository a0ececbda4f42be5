import numpy as np

from pcreg.mapping.retrieval import CANDIDATES, MAX_SCANS, candidates
from pcreg.registration.screening import Sketch

GROUPS = 6


def sketches(n: int) -> list[Sketch]:
    """Scans in groups, by number; descriptors of a group have centres of their own."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((GROUPS, 8, 16))
    made = []
    for row in range(n):
        features = centres[row % GROUPS][rng.integers(8, size=60)] + 0.3 * rng.standard_normal((60, 16))
        made.append(Sketch(np.zeros((60, 3), np.float32), features.astype(np.float32), 0.05))
    return made


def test_few_scans_are_compared_each_with_each():
    assert candidates(sketches(4)) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


def test_of_many_those_that_are_alike():
    n = MAX_SCANS + 26  # 21 in each group
    pairs = np.array(candidates(sketches(n)))
    assert (pairs[:, 0] > pairs[:, 1]).all()
    assert len(pairs) <= n * CANDIDATES
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] % GROUPS == pairs[:, 1] % GROUPS).mean() > 0.99
