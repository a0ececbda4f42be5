import numpy as np
import pytest

from pcreg.datasets.altered import Mixture
from pcreg.io.pairs import Pair
from pcreg.runtime.errors import InputError


class Numbers:
    """Pairs of clouds that hold one number each, their own."""

    def __init__(self, first: int, count: int):
        self.pairs = [Pair(f"{n}", f"{n}", np.eye(4)) for n in range(first, first + count)]

    def cloud(self, name: str) -> np.ndarray:
        assert name in {pair.source for pair in self.pairs}
        return np.full((1, 3), float(name))


def numbers(mixture: Mixture) -> list[int]:
    assert all(np.array_equal(mixture.cloud(p.source), mixture.cloud(p.target)) for p in mixture.pairs)
    return [int(mixture.cloud(pair.source)[0, 0]) for pair in mixture.pairs]


@pytest.mark.parametrize(
    ("share", "replayed"),
    [(0.5, [0, 1, 2, 3, 4, 5]), (0.25, [0, 5]), (0.7, [0, 1, 2, 3, 4, 5] * 2 + [0, 5])],
)
def test_the_share_is_of_the_whole_and_clouds_come_from_where_they_are(share, replayed):
    # both have clouds called 3, 4 and 5
    assert numbers(Mixture(Numbers(3, 6), Numbers(0, 6), share)) == [3, 4, 5, 6, 7, 8, *replayed]


def test_what_cannot_be_mixed_is_refused():
    with pytest.raises(InputError, match="replay_share=1: a fraction"):
        Mixture(Numbers(0, 2), Numbers(0, 2), 1.0)
    with pytest.raises(InputError, match="replay: the data set has no pairs"):
        Mixture(Numbers(0, 2), Numbers(0, 0), 0.5)
