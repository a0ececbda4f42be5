from types import SimpleNamespace

import numpy as np
import pytest

from pcreg.features.base import Description
from pcreg.geometry.se3 import random_rotation
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.preprocess import describe, downsample_and_filter, mirrored, sampled_twice
from pcreg.runtime.errors import InputError


def test_a_point_stays_with_four_others_within_two_voxels():
    """The middle stays with four neighbours at exactly two voxels, and goes if one is further away."""
    arms = np.array([[0, 0, 0], [2, 0, 0], [-2, 0, 0], [0, 2, 0], [0, -2, 0]]) * 0.125
    longer = arms + np.array([10, 0, 0])
    longer[4, 1] *= 1.25
    assert downsample_and_filter(np.concatenate([arms, longer]), 0.125, np.zeros(3)).tolist() == [0]


@pytest.mark.parametrize(("width", "words"), [(0, "line.*name x, y, z"), (0.057, "on a"), (0.059, "check")])
def test_a_line_is_refused_without_advice_on_the_voxel(width, words):
    strip = np.c_[np.linspace(0, 10, 5000), np.tile([0, width], 2500), np.zeros(5000)]
    with pytest.raises(InputError, match=rf"wire\.ply.* {words}"):
        describe(strip @ random_rotation(np.random.default_rng(0)), Heights(1, voxel=0.001), "wire.ply")


class Heights:
    """A descriptor that keeps every n-th point, in reverse order."""

    def __init__(self, n: int, voxel: float = 0.1) -> None:
        self.n, self.voxel = n, voxel

    def describe(self, points: np.ndarray, viewpoints: np.ndarray | None) -> Description:
        self.points, self.viewpoints = points, viewpoints
        kept = points if self.n == 1 else points[:: -self.n]
        return Description(kept, kept[:, 2:].astype(np.float32))


@pytest.mark.parametrize("n", [1, 3])
def test_rows_of_described_points_are_those_of_the_cloud(n):
    rng = np.random.default_rng(0)
    points = np.c_[rng.uniform(0, 2, (4000, 2)), rng.uniform(0, 0.01, 4000)] + 5
    descriptor, place = Heights(n), np.array([5.0, 5.0, 7.0])
    found = describe(points, descriptor, viewpoint=Viewpoint(place, known=True))
    assert len(found.rows) == -(-len(descriptor.points) // n)
    np.testing.assert_allclose(found.points, points[found.rows])
    heights = (points[found.rows] - place)[:, 2]
    np.testing.assert_allclose(found.features[:, 0], heights, rtol=1e-6)


@pytest.mark.parametrize(("kept", "words"), [(None, "returned .* features"), (0, "no point of it")])
def test_a_descriptor_that_returns_no_numbers_or_no_points_is_refused(kept, words):
    points, descriptor = np.random.default_rng(0).uniform(0, [2, 2, 0.01], (4000, 3)), Heights(1)
    descriptor.name = "heights"
    descriptor.describe = lambda rows, _: Description(rows[:kept], np.full((len(rows[:kept]), 1), np.nan))
    with pytest.raises(InputError, match=words):
        describe(points, descriptor)


@pytest.mark.parametrize("invariant", [False, True])
def test_a_mirrored_cloud_is_described_again_unless_features_are_the_same(invariant):
    points = np.random.default_rng(0).uniform(0, [2, 2, 0.01], (4000, 3)) @ [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
    descriptor = Heights(1)
    descriptor.reflection_invariant = invariant
    cloud = describe(points, descriptor)
    flipped = mirrored(cloud, descriptor)
    assert (flipped.features == cloud.features).all() == invariant
    assert (flipped.features - cloud.features).std() < 0.05  # heights over another origin, of nearest points
    if not invariant:
        rays = flipped.surface - flipped.viewpoint
        np.testing.assert_allclose(descriptor.points - descriptor.viewpoints, rays)
    for rows in ("points", "surface", "normals", "viewpoint"):
        np.testing.assert_array_equal(getattr(flipped, rows), getattr(cloud, rows) * [-1, 1, 1])


@pytest.mark.parametrize(("other", "mean"), [([0.0, 4.0], [1.8, 2.4]), ([-3.0, 0.0], [0.0, 0.0])])
def test_a_mean_over_two_samples_keeps_the_length_of_the_first_feature(other, mean):
    points = np.random.default_rng(0).uniform(0, [2, 2, 0.01], (4000, 3))
    features = iter(([3.0, 0.0], other))

    def described(points, viewpoints):
        return Description(points, np.tile(next(features), (len(points), 1)))

    descriptor = SimpleNamespace(voxel=0.1, describe=described)
    twice = sampled_twice(describe(points, descriptor), descriptor)
    np.testing.assert_allclose(twice.features - mean, 0, atol=1e-12)


def test_a_descriptor_counts_from_the_viewpoint_and_is_told_of_several():
    rng = np.random.default_rng(0)
    points, descriptor = np.c_[rng.uniform(0, 2, (4000, 2)), np.zeros(4000)], Heights(1)
    place = np.array([0.3, 0.4, 2.0])
    found = describe(points, descriptor, viewpoint=Viewpoint(place, known=True))
    assert descriptor.viewpoints is None
    np.testing.assert_array_equal(descriptor.points, points[found.rows] - place)
    places = place + rng.integers(2, size=(4000, 1))
    found = describe(points, descriptor, viewpoint=Viewpoint(places, known=True))
    np.testing.assert_array_equal(descriptor.viewpoints, places[found.rows])
