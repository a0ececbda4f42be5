"""Motions from matches of which few are right: the right one is among them."""

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import rotation_error, translation_error
from pcreg.registration.matching.spatial_consistency import consistent_motions
from tests.pcreg.registration.test_ransac import correspondences


@pytest.mark.parametrize(("P", "inlier_ratio"), [(2000, 0.01), (200, 0.1), (3, 1.0)])
def test_the_right_motion_is_among_them(P, inlier_ratio):
    source, target, T = correspondences(P=P, inlier_ratio=inlier_ratio, noise=0.005)
    for like in (np.asarray, torch.from_numpy):
        found = consistent_motions(like(source), like(target), 0.05)
        assert 0 < len(found) <= 300
        np.testing.assert_allclose(
            found[:, :3, :3] @ found[:, :3, :3].transpose(0, 2, 1), [np.eye(3)] * len(found), atol=1e-9
        )
        assert min(translation_error(motion, T) for motion in found) < 0.05
        assert min(rotation_error(motion, T) for motion in found) < 2


def test_the_same_matches_give_the_same_motions_wherever_the_clouds_lie():
    source, target, _ = correspondences(P=300, inlier_ratio=0.1)
    here = consistent_motions(source, target, 0.05)
    np.testing.assert_array_equal(here, consistent_motions(source, target, 0.05))
    far = consistent_motions(source + 1e5, target, 0.05)
    np.testing.assert_allclose(far[:, :3, :3], here[:, :3, :3], atol=1e-6)


@pytest.mark.parametrize("P", [1, 2, 5])
def test_matches_that_do_not_agree_give_no_motion(P):
    rng = np.random.default_rng(0)
    source = rng.uniform(-1, 1, (P, 3))
    assert consistent_motions(source, 3 * source, 0.01).shape == (0, 4, 4)
