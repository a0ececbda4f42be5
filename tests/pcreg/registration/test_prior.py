"""A prior narrows the search, and is never silently violated."""

import numpy as np
import pytest
import torch

from pcreg import Prior, register
from pcreg.geometry.se3 import (
    inverse,
    mean_displacement,
    random_rotation,
    rotation_about,
    rotation_error,
    se3,
    transform,
    translation_error,
)
from pcreg.registration.estimation.ransac import ransac
from pcreg.registration.matching.prior import ANY
from pcreg.registration.matching.spatial_consistency import consistent_motions
from pcreg.runtime.errors import InputError
from tests.pcreg.registration.test_api import VOXEL

UP = np.array([0.0, 0.0, 1.0])
DISTANCE = 0.05


def upright(degrees: float = 70.0) -> np.ndarray:
    return se3(rotation_about(UP, degrees), np.array([1.0, -2.0, 0.5]))


def matches(*motions: tuple[np.ndarray, int], wrong: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Source and target (P, 3): matches of each motion in the given numbers, and wrong matches."""
    rng = np.random.default_rng(seed)
    source = [rng.uniform(-2, 2, (count, 3)) for _, count in motions]
    target = [transform(T, points) for (T, _), points in zip(motions, source, strict=True)]
    return tuple(np.concatenate([*side, rng.uniform(-2, 2, (wrong, 3))]) for side in (source, target))


def test_one_match_in_fifty_is_enough_for_few_samples_where_the_vertical_is_known():
    source, target = matches((upright(), 20), wrong=980)
    settings = {"distance": DISTANCE, "iterations": 15_000}
    found = (ransac(source, target, **settings, prior=prior)[0] for prior in (ANY, Prior(gravity=True)))
    without, upheld = (mean_displacement(source, T, upright()) for T in found)
    assert upheld < 0.01 < 1 < without


def test_a_motion_that_tilts_is_not_searched_for():
    tilted = se3(rotation_about((1, 0, 0), 25), np.ones(3))
    source, target = matches((tilted, 60), (upright(), 40), wrong=50)
    free, *_ = ransac(source, target, distance=DISTANCE)
    assert rotation_error(free, tilted) < 0.1
    held, *_ = ransac(source, target, distance=DISTANCE, prior=Prior(gravity=True))
    assert rotation_error(held, upright()) < 0.1


def test_a_motion_that_is_not_near_is_not_searched_for():
    far, offset = se3(random_rotation(np.random.default_rng(1)), np.ones(3)), np.array([0.3, 0, 0])
    source, target = matches((far, 60), (upright(), 30), wrong=200)
    near = upright(80) @ se3(np.eye(3), offset)
    prior = Prior(near=near, within=(1.0, 20.0)).about(source)
    assert rotation_error(ransac(source, target, distance=DISTANCE)[0], far) < 0.1
    held, *_ = ransac(source, target, distance=DISTANCE, prior=prior)
    assert rotation_error(held, upright()) < 0.1
    assert not prior.possible(source[:60], target[:60], DISTANCE).all()
    assert prior.possible(source[60:90], target[60:90], DISTANCE).all()


def test_the_given_motion_is_tried_itself():
    source, target = np.random.default_rng(0).uniform(-2, 2, (2, 50, 3))  # matches of nothing
    prior = Prior(near=upright(), within=(5.0, 180.0)).about(source)

    def agreement(motions):
        return np.isclose(motions, upright()).all((1, 2)).astype(float)

    estimate, *_ = ransac(source, target, distance=DISTANCE, prior=prior, agreement=agreement)
    np.testing.assert_allclose(estimate, upright(), atol=1e-9)


def test_the_given_motion_is_tried_where_no_one_way_match_is_possible():
    rng = np.random.default_rng(0)
    source = rng.uniform(-2, 2, (20, 3))
    target = transform(upright(), source) + rng.normal(0, 0.1, (20, 3))  # possible, and none agree
    one_way = source, target + 100
    prior = Prior(near=upright(), within=(0.5, 5.0)).about(source)
    for count in (20, 2):
        matched = source[:count], target[:count]
        estimate, *_ = ransac(*matched, distance=1e-3, iterations=100, prior=prior, one_way=one_way)
        np.testing.assert_allclose(estimate, upright(), atol=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 1.5])
def test_consistent_matches_agree_in_their_heights(tilt):
    source, target = matches((upright(), 12), wrong=400)
    ups = rotation_about((1, 1, 0), tilt) @ UP, UP  # one vertical is off
    motions = consistent_motions(source, target, DISTANCE, Prior(gravity=ups))
    assert min(mean_displacement(source, T, upright()) for T in motions) < 0.15
    assert (motions[:, :3, :3] @ ups[0] @ ups[1] >= np.cos(np.radians(10))).all()


def test_the_vertical_as_a_tensor_with_a_gradient():
    up = torch.tensor([0.0, 0.0, 2.0], requires_grad=True)
    for gravity in (up, (up, up)):
        np.testing.assert_array_equal(Prior(gravity=gravity).gravity, [[0, 0, 1]] * 2)


def test_a_violation_is_put_into_words():
    gravity = Prior(gravity=True)
    assert gravity.violation(upright() @ se3(rotation_about((1, 0, 0), 4.9), np.zeros(3))) == ""
    tilted = se3(rotation_about((0, 1, 0), 5.1), np.zeros(3))
    assert "tilts the source by 5.1 degrees" in gravity.violation(tilted)
    source = np.random.default_rng(0).normal(100, 1, (50, 3))  # far from the origin, which does not matter
    near = Prior(near=upright(), within=(0.5, 10.0)).about(source)
    middle = source.mean(0)

    def turned(degrees):
        there = se3(np.eye(3), middle)
        return upright() @ there @ se3(rotation_about(UP, degrees), np.zeros(3)) @ inverse(there)

    def shifted(metres):
        return se3(np.eye(3), metres * UP) @ upright()

    assert near.violation(turned(9)) == ""
    assert "is 0.00 m and 11.0 degrees from" in near.violation(turned(11))
    assert "is 0.60 m and 0.0 degrees from" in near.violation(shifted(0.6))
    tilts = [se3(rotation_about((0, 1, 0), degrees), np.zeros(3)) for degrees in (9.9, 10.1)]
    limits = (near, turned(14.9), turned(15.1)), (near, shifted(0.59), shifted(0.61)), (gravity, *tilts)
    for prior, *pair in limits:
        assert prior.allows(np.stack(pair), DISTANCE).tolist() == [True, False]
    for degrees, metres in ((10, 0.55 + 4 * np.sin(np.radians(5))), (400, 4.55)):  # 2 m from the middle
        wide = Prior(near=upright(), within=(0.5, degrees)).about(source)
        for prior, at in ((wide, middle), (wide.between(middle, -middle), 0 * middle)):
            place = np.tile(at + 2 * np.eye(3)[0], (2, 1))
            moved = transform(prior.near, place) + np.outer([metres - 0.01, metres + 0.01], UP)
            assert prior.possible(place, moved, DISTANCE).tolist() == [True, False]
    box = transform(upright(), middle[None]) + np.array([[0, 0, 0.8], [1, 1, 1]])
    assert [near.reaches(box, radius) for radius in (0.29, 0.31)] == [False, True]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gravity": (0, 0, 0)}, "gravity 0, 0, 0 is not a direction"),
        ({"gravity": "up"}, "gravity up is not a direction; use True for z"),
        ({"gravity": (0, np.nan, 0)}, "is not a direction"),
        ({"gravity": [(0, 0, 1)] * 3}, "is not a direction"),
        ({"near": np.eye(4)}, "near and within go together"),
        ({"within": (1, 2)}, "near and within go together"),
        ({"near": np.eye(4), "within": (1, 0)}, "two positive numbers"),
        ({"near": np.eye(4), "within": 1}, "two positive numbers"),
        ({"near": 2 * np.eye(4), "within": (1, 1)}, "near: "),
    ],
)
def test_what_is_no_prior_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        Prior(**options)


def test_a_room_is_registered_with_a_true_prior(room):
    near = room.T_target_source @ se3(rotation_about(UP, 5), np.full(3, 0.2))
    ups = tuple(T[:3, :3].T @ UP for T in (room.T_world_source, room.T_world_target))
    prior = Prior(gravity=ups, near=near, within=(1.0, 15.0))
    found = register(room.source, room.target, voxel=VOXEL, viewpoint="sensor", prior=prior)
    assert found.registered
    assert translation_error(found.T_target_source, room.T_target_source) < 0.03


def test_a_room_is_not_registered_outside_of_a_prior(room):
    off = inverse(room.T_target_source) @ se3(np.eye(3), np.array([5.0, 0, 0]))
    prior = Prior(near=inverse(off), within=(1.0, 10.0))
    found = register(room.source, room.target, voxel=VOXEL, viewpoint="sensor", prior=prior)
    assert not found.registered
