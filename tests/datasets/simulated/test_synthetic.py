import numpy as np
import pytest

from pcreg.datasets.simulated.room import Room, furnished_room
from pcreg.datasets.simulated.synthetic import OVERLAP_DISTANCE, Scanner, SyntheticRooms
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.runtime.errors import InputError

DEMO_SEED = 2


@pytest.fixture(scope="module")
def rooms() -> SyntheticRooms:
    return SyntheticRooms(seed=DEMO_SEED, count=2, step=0.5)


def box_room(low, high) -> Room:
    from trimesh.creation import box

    return Room(box(bounds=[low, high]), np.array(high) - np.array(low))


def shared(source, target, T_target_source):
    return measured_overlap(source, target, T_target_source, OVERLAP_DISTANCE)


def test_the_demo_room_is_worth_registering():
    room = SyntheticRooms(seed=DEMO_SEED, count=1).room(0)
    assert 0.4 <= room.overlap <= 0.6
    assert room.overlap == shared(room.source, room.target, room.T_target_source)
    for scan in (room.source, room.target):
        assert 50_000 <= len(scan) <= 150_000
        assert scan.dtype == np.float64
        assert np.isfinite(scan).all()


def test_the_truth_lays_the_shared_surface_on_itself(rooms):
    room = rooms.room(0)
    assert shared(room.source, room.target, np.eye(4)) < 0.25
    slid = se3(np.eye(3), np.array([0.3, 0.3, 0.3])) @ room.T_target_source
    assert shared(room.source, room.target, slid) < 0.7 * room.overlap
    np.testing.assert_allclose(
        transform(room.T_world_source, room.source),
        transform(room.T_world_target @ room.T_target_source, room.source),
        atol=1e-12,
    )


def test_pairs_and_clouds_by_name(rooms):
    assert [pair.name for pair in rooms.pairs] == [
        "room-0/source->room-0/target",
        "room-1/source->room-1/target",
    ]
    pair = rooms.pairs[1]
    clouds = rooms.cloud(pair.source), rooms.cloud(pair.target)
    assert shared(*clouds, pair.T_target_source) == pair.overlap


def test_same_seed_same_bits_whatever_the_count(rooms):
    again = SyntheticRooms(seed=DEMO_SEED, count=5, overlap=(0.45, 0.5501), step=0.5)  # not from the cache
    np.testing.assert_array_equal(again.cloud("room-1/source"), rooms.cloud("room-1/source"))


def test_another_seed_another_room(rooms):
    other = SyntheticRooms(seed=DEMO_SEED + 1, count=1, step=0.5)
    assert other.cloud("room-0/source").shape != rooms.cloud("room-0/source").shape


@pytest.mark.parametrize("name", ["room-2/source", "room-0/other", "room-0", "room--1/source", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(rooms, name):
    with pytest.raises(InputError, match="room-1/target"):
        rooms.cloud(name)


def test_at_least_one_room():
    with pytest.raises(InputError, match="count"):
        SyntheticRooms(count=0)


def test_an_overlap_that_no_two_views_have_is_refused():
    with pytest.raises(InputError, match="overlap"):
        SyntheticRooms(count=1, step=8.0, overlap=(1.5, 2.0)).cloud("room-0/source")


def test_ranges_in_an_empty_box_are_known():
    """Without noise every point lies on the box, as far away as the wall is."""
    scanner = Scanner(step=2.0, noise=(0.0, 0.0))
    pose = se3(rotation_about((0, 0, 1), 30), np.array([1.0, 2.0, 1.5]))
    points = scanner.scan(box_room((0, 0, 0), (4, 5, 3)), pose, np.random.default_rng(0))
    world = transform(pose, points)
    assert (np.minimum(np.abs(world), np.abs(world - [4, 5, 3])).min(1) < 1e-5).all()
    assert len(points) > 0.9 * len(scanner.rays())


def test_rays_stay_within_the_field_of_view():
    scanner = Scanner(horizontal=60, vertical=40, pitch=0, step=1.0)
    rays = scanner.rays()
    assert len(rays) == 60 * 40
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1)
    assert np.degrees(np.abs(np.arctan2(rays[:, 1], rays[:, 0]))).max() == pytest.approx(30)
    assert np.degrees(np.abs(np.arcsin(rays[:, 2]))).max() == pytest.approx(20)


def test_what_is_hidden_is_not_scanned():
    """A board in front of a wall leaves a shadow of known size on it."""
    from trimesh.creation import box
    from trimesh.util import concatenate

    wall, board = box(bounds=[[4, -9, -9], [4.1, 9, 9]]), box(bounds=[[2, -0.5, -0.5], [2.1, 0.5, 0.5]])
    scanner = Scanner(pitch=0, step=1.0, noise=(0.0, 0.0))
    points = scanner.scan(Room(concatenate([wall, board]), np.ones(3)), np.eye(4), np.random.default_rng(0))
    on_wall = points[points[:, 0] > 3]
    assert len(on_wall) > 100
    assert (np.abs(on_wall[:, 1:]).max(1) >= 1.0).all()  # twice as far, twice as large


def test_noise_grows_with_range():
    scanner = Scanner(step=0.5, noise=(0.001, 0.002), grazing=0.9)
    rng = np.random.default_rng(0)
    spreads = []
    for distance in (1.0, 4.0):
        points = scanner.scan(box_room((distance, -20, -20), (distance + 1, 20, 20)), np.eye(4), rng)
        along = points / np.linalg.norm(points, axis=1, keepdims=True)
        error = np.linalg.norm(points, axis=1) - distance / along[:, 0]
        sigma = 0.001 + 0.002 * (distance / along[:, 0]) ** 2
        spreads.append((error / sigma).std())
    assert spreads == pytest.approx([1, 1], abs=0.05)


def test_furniture_stands_inside_the_walls():
    for seed in range(5):
        room = furnished_room(np.random.default_rng(seed))
        assert (room.mesh.bounds[0] >= -0.26).all()
        assert (room.mesh.bounds[1] <= room.size + 0.26).all()
