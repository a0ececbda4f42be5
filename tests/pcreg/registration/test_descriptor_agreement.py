"""Descriptor similarity of clouds with given descriptors, under the right motion and others."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pcreg.features.base import Description
from pcreg.geometry.se3 import se3, transform, translation_error
from pcreg.registration.estimation.agreement import DescriptorAgreement

MOTION = se3(np.eye(3), np.array([3.0, -1.0, 0.5]))


@pytest.fixture
def clouds():
    """A floor of 600 points, whose descriptors vary from place to place, and the same floor moved."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-2, 2, (600, 3)) * [1, 1, 0]
    features = np.sin(points[:, :2] @ rng.normal(size=(2, 8)) * 2 + rng.uniform(0, 6, 8))
    noisy = features + 0.3 * rng.normal(size=features.shape)
    return Description(points, features), Description(transform(MOTION, points), noisy)


def test_surfaces_that_touch_agree_under_the_right_motion_alone(clouds):
    agreement = DescriptorAgreement(*clouds, 0.1)
    turned = MOTION @ se3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))  # floor on floor as well
    far = se3(np.eye(3), np.array([100.0, 0, 0]))  # nothing touches
    of_right, of_turned, of_none, of_far = agreement(np.stack([MOTION, turned, np.eye(4), far]))
    assert of_right > 1
    assert of_turned < 0.2
    assert of_none < 0.2
    assert of_far == 0


@pytest.mark.parametrize("change", [lambda f: 7 * f, lambda f: f + 50.0])
def test_unit_and_offset_of_descriptors_do_not_matter(clouds, change):
    before = DescriptorAgreement(*clouds, 0.1)(MOTION[None])
    changed = (Description(cloud.points, change(cloud.features)) for cloud in clouds)
    assert DescriptorAgreement(*changed, 0.1)(MOTION[None]) == pytest.approx(before, abs=1e-6)


def test_descriptors_that_are_all_alike_say_nothing(clouds):
    alike = (Description(cloud.points, np.ones((600, 8), np.float32)) for cloud in clouds)
    assert DescriptorAgreement(*alike, 0.1)(MOTION[None]) == 0


def test_a_motion_that_is_slightly_off_is_refined(clouds):
    """The clouds are a floor, along which only descriptors determine the motion."""
    agreement = DescriptorAgreement(*clouds, 0.3)
    off = MOTION @ se3(np.eye(3), np.array([0.1, -0.05, 0.1]))
    apart = se3(np.eye(3), np.array([100.0, 0, 0]))
    refined, same = agreement.refine(np.stack([off, apart]))
    assert translation_error(refined, MOTION) < 0.02
    np.testing.assert_array_equal(same, apart)  # nothing to refine it by


@pytest.mark.parametrize(("alike", "refined"), [(9, False), (10, True)])
def test_ten_points_with_like_descriptors_refine_a_motion_and_no_others_move_it(alike, refined):
    """All 30 points are near partners; points with other descriptors would give another motion."""
    points, others = np.argwhere(np.ones((5, 3, 2))).astype(float), np.arange(30) >= alike
    features = np.eye(30)[np.where(others, np.roll(np.arange(30), 1), np.arange(30))]
    source, target = Description(points, np.eye(30)), Description(points + 0.2 * others[:, None], features)
    start = se3(np.eye(3), np.array([0.1, 0, 0]))
    (found,) = DescriptorAgreement(source, target, 0.5).refine(start[None])
    np.testing.assert_allclose(found, np.eye(4) if refined else start, atol=1e-9)


def test_points_further_apart_or_less_alike_move_it_less():
    """Two of 21 points are 0.9 distances from their partners, two 0.5 from partners of half similarity."""
    points, features, off = np.argwhere(np.ones((3, 7, 1))).astype(float), np.eye(21), np.zeros((21, 3))
    off[[0, 20], 2], off[[6, 14], 1] = 0.9, 0.5  # opposite corners, so that nothing turns
    features[[6, 14]] = 0.4 * features[[6, 14]] + 0.2
    target = Description(points + off, features)
    (found,) = DescriptorAgreement(Description(points, np.eye(21)), target, 1.0).refine(np.eye(4)[None])
    assert 0 < found[1, 3] < 0.02
    assert 0 < found[2, 3] < 0.03


def test_tensors_give_the_same(clouds):
    motions = np.stack([MOTION, np.eye(4), MOTION @ se3(np.eye(3), np.array([0.1, -0.05, 0.1]))])
    here = DescriptorAgreement(*clouds, 0.3)
    tensors = [
        SimpleNamespace(points=torch.from_numpy(each.points), features=torch.from_numpy(each.features))
        for each in clouds
    ]
    there = DescriptorAgreement(*tensors, 0.3)
    assert (there.threshold, there.deviation) == pytest.approx((here.threshold, here.deviation))
    np.testing.assert_allclose(there(motions), here(motions), rtol=1e-9)
    np.testing.assert_allclose(there.refine(motions), here.refine(motions), atol=1e-9)
