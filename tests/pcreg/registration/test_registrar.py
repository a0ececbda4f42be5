from dataclasses import replace

import numpy as np
import pytest

from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import inverse, rotation_error, se3, transform, translation_error
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room

VOXEL = 0.08


@pytest.fixture(scope="module")
def registrar() -> Registrar:
    return Registrar(FPFH(VOXEL))


@pytest.fixture(scope="module")
def found(room, registrar) -> Registration:
    return registrar.register(room.source, room.target)


def test_a_known_motion_comes_back(room, found):
    assert found.registered
    assert found.confidence > 0.8
    assert rotation_error(found.T_target_source, room.T_target_source) < 0.5
    assert translation_error(found.T_target_source, room.T_target_source) < 0.03
    assert found.overlap == pytest.approx(room.overlap, abs=0.2)
    assert found.inliers > 50
    assert 0 < found.rmse < VOXEL
    assert list(found.seconds) == ["describe", "match", "estimate", "refine", "judge"]


def test_same_seed_same_bits(room, registrar, found):
    again = registrar.register(room.source, room.target, seed=0)
    assert (again.T_target_source == found.T_target_source).all()
    assert (again.inliers, again.reason) == (found.inliers, found.reason)


def test_swapped_clouds_give_the_inverse(room, registrar, found):
    swapped = registrar.register(room.target, room.source)
    assert swapped.registered
    error = rotation_error(inverse(swapped.T_target_source), found.T_target_source)
    assert error < 0.5


def test_map_coordinates_lose_no_digits(room, registrar, found):
    """Both clouds moved to UTM-like coordinates: the same registration up to that shift, to 1 mm."""
    place = se3(np.eye(3), np.array([5e5, 4e6, 100.0]))
    far = registrar.register(transform(place, room.source), transform(place, room.target))
    assert far.registered
    back = inverse(place) @ far.T_target_source @ place
    apart = transform(back, room.source) - transform(found.T_target_source, room.source)
    assert np.linalg.norm(apart, axis=1).max() < 1e-3


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("side", ["source", "target"])
def test_different_rooms_are_not_registered(room, registrar, number, side):
    other = getattr(stored_room(number), side)
    assert not registrar.register(room.source, other).registered


def test_noise_alone_is_not_registered(registrar):
    source, target = np.random.default_rng(0).uniform(-2, 2, (2, 5000, 3))
    assert not registrar.register(source, target).registered


def test_two_bare_floors_are_not_registered(registrar):
    """Planes fit each other in every place: that is no evidence."""
    source, target = (
        np.c_[np.random.default_rng(seed).uniform(-3, 3, (8000, 2)), np.full(8000, -1.5)] for seed in (0, 1)
    )
    assert not registrar.register(source, target).registered


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.empty((0, 3)), "holds no points"),
        (np.zeros((1, 3)), "too few at any voxel"),
        (np.eye(3), "too few at any voxel"),
        (np.ones((500, 3)), "too few at any voxel"),
        (np.random.default_rng(0).uniform(0, 0.1, (500, 3)), "try a voxel of 0.00"),
        (np.zeros((5, 2)), "finite rows"),
        (np.full((50, 3), np.nan), "finite rows"),
    ],
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_bad_clouds_are_refused_by_name(room, registrar, points, words, side):
    clouds = {"source": room.source, "target": room.target} | {side: points}
    with pytest.raises(InputError, match=words) as caught:
        registrar.register(**clouds, names=("left.ply", "right.ply"))
    assert ("left.ply" if side == "source" else "right.ply") in str(caught.value)


@pytest.mark.parametrize("option", ["match_reach", "overlap_reach", "free_reach", "attempts", "iterations"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_multiples_are_checked(option, value):
    with pytest.raises(InputError, match=option):
        Registrar(FPFH(VOXEL), **{option: value})


def test_a_registration_cannot_be_changed(found):
    with pytest.raises(AttributeError):
        found.registered = False
    assert replace(found, registered=False).T_target_source is found.T_target_source
