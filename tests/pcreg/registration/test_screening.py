import numpy as np
import pytest

from pcreg.geometry.se3 import random_rotation, se3, transform
from pcreg.registration.matching.screening import Keypoints, mutual_matches, screen
from tests.pcreg.registration.test_matching import A, B

VOXEL = 0.05


def keypoints(points: np.ndarray, features: np.ndarray) -> Keypoints:
    return Keypoints(points.astype(np.float32), features.astype(np.float32), VOXEL)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_matches_that_agree_on_one_motion_are_counted(rng):
    """80 of 300 points are in both scans, moved, with the same descriptors; the others differ."""
    T = se3(random_rotation(rng), np.array([3.0, -1.0, 2.0]))
    points, other = rng.uniform(0, 3, (2, 300, 3))
    features, others = rng.standard_normal((2, 300, 32))
    other[:80], others[:80] = transform(T, points[:80]), features[:80]
    assert 80 <= screen(keypoints(points, features), keypoints(other, others)) < 90


def test_matches_by_chance_agree_on_little(rng):
    points, other = rng.uniform(0, 3, (2, 300, 3))
    features, others = rng.standard_normal((2, 300, 32))
    assert screen(keypoints(points, features), keypoints(other, others)) < 10


def test_of_a_hand_computed_example_the_mutual_matches_are_taken():
    points, partners = mutual_matches(keypoints(np.eye(4, 3), A), keypoints(np.eye(3) + 5, B))
    np.testing.assert_array_equal(points, np.eye(4, 3)[[0, 2]])
    np.testing.assert_array_equal(partners, (np.eye(3) + 5)[[1, 0]])


def test_scans_of_hardly_any_points(rng):
    points, features = rng.uniform(0, 3, (2, 3)), rng.standard_normal((2, 32))
    assert screen(keypoints(points, features), keypoints(points, features)) == 0
