"""The verdict on given motions."""

import numpy as np
import pytest

from pcreg import verify
from pcreg.geometry.se3 import adjoint, inverse, mean_displacement, rotation_about, se3
from pcreg.runtime.errors import InputError
from tests.pcreg.registration.test_api import VOXEL, correct


@pytest.fixture(scope="module")
def pair(room, registrar):
    return tuple(registrar.prepare(cloud, viewpoint="sensor") for cloud in (room.source, room.target))


def off(room, metres: float, degrees: float = 0.0) -> np.ndarray:
    """The true motion, preceded by a rotation and a shift of the source about its middle."""
    middle = room.source.mean(0)
    moved = se3(rotation_about((1, 2, 3), degrees), middle + np.array([metres, 0, 0]))
    return room.T_target_source @ moved @ se3(np.eye(3), -middle)


@pytest.mark.parametrize(("metres", "degrees"), [(0.0, 0.0), (0.05, 1.0)])
def test_a_motion_that_is_nearly_right_is_accepted_and_corrected(room, registrar, pair, metres, degrees):
    found = registrar.verify(*pair, off(room, metres, degrees))
    assert found.registered
    assert found.confidence > 0.95
    assert mean_displacement(room.source, found.T_target_source, room.T_target_source) < 0.02
    assert any("corrected the given transform by 0.0" in note for note in found.notes)
    assert found.covariance.shape == (6, 6)


@pytest.mark.parametrize("metres", [0.3, 1.0])
def test_a_motion_that_is_off_is_refused_though_refinement_mends_it(room, registrar, pair, metres):
    given = off(room, metres)
    found = registrar.verify(*pair, given)
    assert not found.registered
    assert found.confidence < 0.3
    assert f"the given transform is {metres:.2g} m off" in found.reason
    np.testing.assert_allclose(found.T_target_source, given, atol=1e-9)
    assert mean_displacement(room.source, found.alternative, room.T_target_source) < 0.02
    assert found.covariance is None


@pytest.mark.parametrize("T", [np.eye(4), se3(np.eye(3), np.array([500.0, 0, 0]))], ids=["wrong", "far away"])
def test_a_motion_that_fits_nowhere_is_refused(registrar, pair, T):
    found = registrar.verify(*pair, T)
    assert not found.registered
    assert found.confidence < 0.3
    assert "inliers of" in found.reason
    assert found.alternative is None
    assert not any("inverse" in note for note in found.notes)
    apart = [note for note in found.notes if "leaves the clouds" in note]
    assert len(apart) == (T[0, 3] == 500)
    assert all("m apart: give its translation in metres" in note for note in apart)


def test_the_inverse_of_the_right_motion_is_refused_and_named(room, registrar, pair):
    found = registrar.verify(*pair, inverse(room.T_target_source))
    assert not found.registered
    assert any("the inverse of the given transform fits" in note for note in found.notes)


def test_what_register_finds_is_verified_as_it_is(registrar, pair):
    searched = registrar.register(*pair)
    found = registrar.verify(*pair, searched.T_target_source)
    assert found.registered
    np.testing.assert_allclose(found.T_target_source, searched.T_target_source, atol=1e-3)
    np.testing.assert_allclose(found.covariance, searched.covariance, rtol=0.2, atol=1e-6)


def test_motion_and_covariance_are_of_the_frames_as_given(room, registrar, pair):
    """For shifted clouds the covariance describes the same error, about another origin."""
    here, there = np.array([30.0, -20.0, 5.0]), np.array([-7.0, 100.0, 2.0])
    to_source, to_target = se3(np.eye(3), here), se3(np.eye(3), there)
    given = to_target @ room.T_target_source @ inverse(to_source)
    still = registrar.verify(*pair, room.T_target_source)
    sides = (room.source, here), (room.target, there)
    moved = registrar.verify(*(registrar.prepare(side + at, viewpoint=at) for side, at in sides), given)
    returned = inverse(to_target) @ moved.T_target_source @ to_source
    np.testing.assert_allclose(returned, still.T_target_source, atol=1e-6)
    back = adjoint(inverse(to_source))
    np.testing.assert_allclose(back @ moved.covariance @ back.T, still.covariance, rtol=1e-4, atol=1e-10)


def test_the_call_takes_units_and_a_rounded_matrix_and_refuses_what_is_none(room):
    settings = {"units": ("mm", "m"), "voxel": VOXEL, "viewpoint": "sensor"}
    found = verify(1000 * room.source, room.target, room.T_target_source.round(4).tolist(), **settings)
    assert found.registered
    assert correct(found, room.T_target_source)
    with pytest.raises(InputError, match="T_target_source: is not a rotation"):
        verify(room.source, room.target, np.diag([2.0, 2, 2, 1]))
