"""The nearest points of a cloud."""

import numpy as np
import pytest

from pcreg.geometry.nearest import have_neighbors


def test_points_have_neighbors_within_the_radius_and_on_it():
    points = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 1, 0], [9, 9, 9]], dtype=float)
    assert have_neighbors(points, 1, 1.0).tolist() == [True, True, True, True, False]
    assert have_neighbors(points, 2, 1.0).tolist() == [False, True, True, False, False]
    assert have_neighbors(points, 1, np.nextafter(1.0, 0)).tolist() == [False] * 5


def test_points_at_one_place_are_neighbors():
    assert have_neighbors(np.zeros((3, 3)), 2, 0.1).all()
    assert not have_neighbors(np.zeros((3, 3)), 3, 0.1).any()


@pytest.mark.parametrize("count", [0, 1, 4])
def test_they_are_those_that_all_distances_tell(count):
    points = np.random.default_rng(0).uniform(0, 1, (300, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    wanted = (distances <= 0.1).sum(1) - 1 >= count
    np.testing.assert_array_equal(have_neighbors(points, count, 0.1), wanted)
