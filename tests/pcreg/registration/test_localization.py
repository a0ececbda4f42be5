"""A scan in a map: simulated rooms side by side, with known poses."""

import numpy as np
import pytest

from pcreg import Prior
from pcreg.geometry.se3 import rotation_error, se3, transform, translation_error
from pcreg.registration.strategy import prepared_map as strategy
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room

APART = np.array([12.0, -7.0, 3.0])  # metres, from a room to the next


@pytest.fixture(scope="module")
def rooms():
    return [stored_room(number) for number in range(3)]


def placed(number: int, T_world_target: np.ndarray) -> np.ndarray:
    """Motion that puts a room's target into the map, upright and apart from other rooms."""
    return se3(np.eye(3), number * APART) @ T_world_target


def map_of(rooms, numbers) -> np.ndarray:
    return np.concatenate([transform(placed(n, rooms[n].T_world_target), rooms[n].target) for n in numbers])


@pytest.fixture(scope="module")
def prepared_map(rooms, registrar):
    return registrar.prepare(map_of(rooms, (0, 1)), name="map", is_map=True)


@pytest.mark.parametrize("number", [0, 1])
def test_a_scan_is_found_in_its_room(rooms, registrar, prepared_map, number):
    found = registrar.register(rooms[number].source, prepared_map)
    truth = placed(number, rooms[number].T_world_source)
    assert found.registered
    assert translation_error(found.T_target_source, truth) < 0.1
    assert rotation_error(found.T_target_source, truth) < 2
    distance = found.transform(found.matched_points[:, 0]) - found.matched_points[:, 1]
    assert (np.linalg.norm(distance, axis=1) < 1.5 * registrar.voxel + 1e-6).all()
    points = map_of(rooms, (0, 1))
    np.testing.assert_allclose(points[found.matches[:, 1]], found.matched_points[:, 1], atol=1e-5)


@pytest.mark.parametrize("count", [0, 60])
def test_a_map_of_too_few_points(rooms, registrar, count):
    whole = registrar.prepare(np.random.default_rng(0).uniform(0, 50, (count, 3)), name="map", is_map=True)
    with pytest.raises(InputError, match="map: too few points for a scan"):
        registrar.register(rooms[0].source, whole)


def test_of_a_map_that_repeats_itself_both_places_are_given(rooms, registrar, monkeypatch):
    """The map has the same room twice, further apart than a region is wide."""
    shift = np.array([40.0, 0.0, 0.0])
    once = map_of(rooms, (0,))
    twice = registrar.prepare(np.concatenate([once, once + shift]), is_map=True)
    found = registrar.register(rooms[0].source, twice)
    assert not found.registered
    assert "two places" in found.reason
    truth = placed(0, rooms[0].T_world_source)
    for T in (found.T_target_source, found.alternative):
        offset = T[:3, 3] - truth[:3, 3]
        assert min(np.linalg.norm(offset), np.linalg.norm(offset - shift)) < 0.1
    assert np.linalg.norm(found.alternative[:3, 3] - found.T_target_source[:3, 3]) > 39
    monkeypatch.setattr(strategy, "PROPOSED", 1)
    for T in (found.T_target_source, found.alternative):  # a prior decides between them, one by one
        near = registrar.register(rooms[0].source, twice, prior=Prior(near=T, within=(1.0, 10.0)))
        assert near.registered
        assert translation_error(near.T_target_source, T) < 0.1
