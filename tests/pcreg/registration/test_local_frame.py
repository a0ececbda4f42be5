"""The answer is the same wherever the origins of the clouds lie."""

from dataclasses import replace

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, se3
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from tests.datasets.street import street_pose, street_scan

SHIFTS = np.random.default_rng(0).standard_normal((2, 3))
SHIFTS /= np.linalg.norm(SHIFTS, axis=1, keepdims=True)
METRES = (0.3, 3, 10, 30, 100, 1000)
FEW_METRES = (3, 1000)  # for whole registrations


def assert_same_wherever(registrar: Registrar, source: np.ndarray, target: np.ndarray) -> Registration:
    """Assert the same motion within 1e-6 m, from the same matches, with the same confidence."""
    still = registrar.register(source, target)
    for metres in FEW_METRES:
        a, b = metres * SHIFTS
        moved = registrar.register(source + a, target + b)
        back = se3(np.eye(3), -b) @ moved.T_target_source @ se3(np.eye(3), a)
        np.testing.assert_allclose(back, still.T_target_source, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(moved.matches, still.matches)
        np.testing.assert_allclose(moved.matched_points - [a, b], still.matched_points, rtol=0, atol=1e-6)
        assert replace(moved.evidence, rmse=0) == replace(still.evidence, rmse=0)
        assert (moved.confidence, moved.reason, moved.notes) == (still.confidence, still.reason, still.notes)
    return still


@pytest.mark.parametrize("settings", [{}, {"descriptor": "fpfh"}], ids=["fcgf", "fpfh"])
def test_rooms(room, settings):
    clouds = (cloud[::3] for cloud in (room.source, room.target))
    assert assert_same_wherever(Registrar(voxel=0.12, **settings), *clouds).registered


def test_rooms_that_no_scale_registers(room):
    """Further scales and the mirror test are tried, with float32, as in most files."""
    clouds = room.source[::20] * [-1, 1, 1], room.target[::20]
    few = (cloud.astype(np.float32).astype(np.float64) for cloud in clouds)
    assert not assert_same_wherever(Registrar(), *few).registered


def test_streets():
    source, target = (street_scan(street_pose(n), seed=n) for n in (5, 0))
    found = assert_same_wherever(Registrar(), source, target)
    truth = inverse(street_pose(0)) @ street_pose(5)
    assert np.linalg.norm(found.T_target_source[:3, 3] - truth[:3, 3]) < 0.2


@pytest.mark.parametrize("unit", [2.0**-24, 1e-3, 1e-4])
def test_stored_coordinates_are_the_same_bits_in_any_frame(unit):
    """Coordinates are multiples of file units: often halves of a step, which a shift may round otherwise."""
    points = np.random.default_rng(0).integers(0, 4 / unit, (20_000, 3)) * unit
    still = local(points)
    np.testing.assert_allclose(still, points - points.min(0), rtol=0, atol=1e-6)
    for shift in np.concatenate([SHIFTS * metres for metres in METRES]):
        np.testing.assert_array_equal(local(points + shift), still)


def local(points):
    return LocalFrame.of(Cloud(points).box).local(points)


def test_clouds_of_any_size_keep_their_shape():
    points = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    for size in (1e-6, 1e-3, 1.0, 1e6):
        found = local(size * points)
        np.testing.assert_allclose(found, size * (points - points.min(0)), rtol=0, atol=2e-6 * min(size, 1))
    assert not local(np.full((10, 3), 7.0)).any()
    assert local(np.empty((0, 3))).shape == (0, 3)
    for size in (1e-305, 5e-324):  # too small for a resolution
        assert np.isfinite(local(points.round() * size)).all()
