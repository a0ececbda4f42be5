"""Clouds of a data set that somebody else wrote."""

import numpy as np
import pytest

from pcreg.io.pairs import points_of
from pcreg.runtime.errors import InputError


class Own:
    """A data set with given clouds."""

    def __init__(self, returned):
        self.returned = returned

    def cloud(self, name):
        return self.returned


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "NoneType"),
        ([[0.0, 0.0, 0.0]], "list"),
        (np.zeros((5, 4)), r"ndarray \(5, 4\) of float64"),
        (np.zeros((5, 3), np.int64), r"ndarray \(5, 3\) of int64"),
    ],
)
def test_anything_but_rows_of_floats_is_refused(returned, words):
    with pytest.raises(InputError, match=rf"Own\.cloud\('a'\) returned {words}; have it return an array"):
        points_of(Own(returned), "a")
    assert points_of(Own(np.ones((2, 3))), "a").sum() == 6
