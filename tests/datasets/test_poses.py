import numpy as np
import pytest

from pcreg.datasets.poses import rigid
from pcreg.geometry.se3 import rotation_about

R = rotation_about([1, 2, 3], 40)


def test_rotations_as_inexact_as_published_ones_are_taken_as_they_are():
    matrix = np.c_[R * (1 + 0.7e-3), [1.0, 2, 3]]  # R R^T is off by 1.4e-3
    np.testing.assert_array_equal(rigid(matrix)[:3], matrix)


@pytest.mark.parametrize("scale", [1.005, 0.995, np.nan, -1])
def test_what_stretches_or_mirrors_is_no_motion(scale):
    with pytest.raises(ValueError, match="not a rotation"):
        rigid(np.c_[R * scale, np.zeros(3)])
