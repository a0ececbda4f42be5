"""Motions from matches few of which are right; one of the motions has to be right."""

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import rotation_error, translation_error
from pcreg.registration.matching import spatial_consistency
from pcreg.registration.matching.prior import ANY, Prior
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


def test_the_motion_of_few_matches_is_there_beside_one_of_many():
    (*many, T_many), (*few, T_few) = (correspondences(P, 1.0, seed=seed) for seed, P in enumerate((400, 12)))
    found = consistent_motions(*map(np.concatenate, zip(many, few, strict=True)), 0.05)
    for T in (T_many, T_few):
        assert min(translation_error(motion, T) for motion in found) < 0.05


def test_matches_agree_that_keep_their_distance_and_heights():
    """Matches 0 and 1 are too close, 2 is raised by about the tolerance (5 cm + 4 %), 3 is 10 cm off."""
    source = np.array([[0.0, 0, 0], [0.08, 0, 0], [1, 0, 0], [2, 0, 0]])
    for raised in (0.08, 0.09):
        target = source + np.array([[0, 0, 0], [0, 0, 0], [0, 0, raised], [0.1, 0, 0]])
        for like in (np.asarray, torch.from_numpy):
            sides = like(source), like(target), 0.05
            agree = spatial_consistency._agreement(*sides, ANY)
            assert agree.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
            assert spatial_consistency._agreement(*sides, Prior(gravity=True)).any() == (raised < 0.085)


def test_matches_rank_by_how_many_agree_with_both(monkeypatch):
    monkeypatch.setattr(spatial_consistency, "BLOCK_COLUMNS", 2)
    agree = np.zeros((5, 5), np.float32)
    agree[[0, 0, 0, 1, 2], [1, 2, 3, 2, 4]] = 1
    agree += agree.T
    for like in (np.asarray, torch.from_numpy):
        shared = spatial_consistency._shared(like(agree), like(np.array([0, 2])))
        assert shared.tolist() == [[0, 1, 1, 0, 0], [1, 1, 0, 0, 0]]


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
