from dataclasses import replace

import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.indoor import recording
from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera
from pcreg.datasets.simulated.indoor.piece import extents
from pcreg.datasets.simulated.indoor.recording import camera_path
from pcreg.datasets.simulated.indoor.scene import indoor_scene
from pcreg.datasets.simulated.indoor.styles import STYLES, furnished
from pcreg.datasets.simulated.recorded import ScenePairs
from tests.datasets.simulated.overlap import mean_overlap

SMALL = DepthCamera(width=96, height=72)


def neighbours(recording):
    """Each cloud and the one before it."""
    return [(n + 1, n) for n in range(len(recording.clouds) - 1)]


@pytest.fixture(scope="module")
def room():
    return recording.record(3, 0, frames=3, camera=SMALL)


def test_clouds_look_like_fragments(room):
    assert 5 <= len(room.clouds) <= 30
    assert room.T_world_cloud.shape == (len(room.clouds), 4, 4)
    for cloud, T in zip(room.clouds, room.T_world_cloud, strict=True):
        assert cloud.dtype == torch.float32
        assert len(cloud) >= recording.MIN_POINTS
        assert cloud[:, :2].abs().max() <= 1.5
        assert 0.5 <= cloud[:, 2].min() <= cloud[:, 2].max() <= 3.51
        np.testing.assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-9)
        assert np.linalg.det(T) == pytest.approx(1)


def test_the_poses_lay_neighbours_on_each_other(room):
    shared = mean_overlap(room, neighbours(room), 0.0375)
    assert shared > 0.4
    assert shared > 1.5 * mean_overlap(room, neighbours(room), 0.0375, shift=0.2)


def test_a_drift_within_fragments_bends_them(room):
    """By up to 10 cm here: neighbours touch less closely, and lie on each other as before."""
    bent = recording.record(3, 0, frames=3, camera=SMALL, bend=0.1)
    close, near = (
        [mean_overlap(made, neighbours(made), radius) for made in (room, bent)] for radius in (0.01, 0.1)
    )
    assert close[1] < 0.8 * close[0]
    assert near[1] > 0.9 * near[0]


def test_same_arguments_same_clouds_and_other_index_other_clouds(room):
    again = recording.record(3, 0, frames=3, camera=SMALL)
    assert all(torch.equal(a, b) for a, b in zip(room.clouds, again.clouds, strict=True))
    np.testing.assert_array_equal(room.T_world_cloud, again.T_world_cloud)
    other = recording.record(3, 1, frames=3, camera=SMALL)
    assert [len(cloud) for cloud in other.clouds] != [len(cloud) for cloud in room.clouds]


@pytest.fixture(scope="module")
def scans():
    return recording.record_scans(3, 0, scans=3, camera=replace(recording.WIDE, width=96, height=72))


def test_scans_lie_on_the_same_surface(scans):
    """Points are found again in a scan that sees the same, within twice the spacing of its rays."""
    assert len(scans.clouds) == len(scans.T_world_cloud) == 3
    assert all(0 < len(cloud) <= 96 * 72 for cloud in scans.clouds)
    overlap = mean_overlap(scans, [(1, 0)], 0.1)
    assert overlap > 0.4
    assert mean_overlap(scans, [(1, 0)], 0.1, shift=0.3) < 0.8 * overlap


def test_a_scan_is_a_view_in_the_cameras_field(scans):
    for cloud in scans.clouds:
        assert recording.WIDE.near <= cloud[:, 2].min() <= cloud[:, 2].max() <= recording.WIDE.far
        assert (cloud[:, :2].abs() <= cloud[:, 2:] * torch.tensor([1.0, 0.75]) + 1e-6).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_two_cameras_see_one_room(share, monkeypatch):
    """Clouds of either lie on each other, where the motion says, be they fragments or single images."""
    made = []

    def noted(*arguments, **options):
        made.append(fragments_or_images(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(recording, "SINGLE_IMAGE_SHARE", share)
    monkeypatch.setattr(recording, "SIZES", ((96, 72),))
    monkeypatch.setattr(recording, "MAX_PIXELS", 3 * 96 * 72)
    monkeypatch.setattr(recording, "_kinect", lambda rng: SMALL)
    fragments_or_images = recording.Visit.images if share else recording.Visit.fragments
    monkeypatch.setattr(recording.Visit, fragments_or_images.__name__, noted)
    both = recording.record_by_two(0, 3)
    count = len(made[-1].clouds)  # of the second
    assert len(made) == (1 if share else 2)
    assert 4 <= count <= 15
    assert 4 <= len(both.clouds) - count <= 15
    np.testing.assert_array_equal(both.T_world_cloud[-count:], made[-1].T_world_cloud)
    scene = ScenePairs.of(both, 0.05, 0.3)
    of_second = scene.pairs >= len(both.clouds) - count
    mixed = of_second[:, 0] & ~of_second[:, 1]
    assert 0.1 < mixed.mean() < 0.4  # and as many the other way
    pairs = scene.pairs[mixed][:6]
    assert mean_overlap(both, pairs, 0.05) > max(0.3, 1.5 * mean_overlap(both, pairs, 0.05, shift=0.2))


def test_scenes_are_finite_full_and_of_the_size_of_rooms():
    for index in range(3 * len(STYLES)):
        scene = indoor_scene(np.random.default_rng([0, index]))
        T = scene.solids.T_world_unit
        assert np.isfinite(T).all()
        assert (np.abs(np.linalg.det(T)) > 0).all()
        assert len(T) > 100
        low, high = extents(scene.solids)
        assert -8 < low.min() < high.max() < 26


def test_rooms_of_a_house_have_the_same_furniture_in_other_places():
    style = STYLES[0]
    house = [furnished(style, np.random.default_rng(7)) for _ in range(2)]
    rng = np.random.default_rng(0)
    for one, other in zip(house[0].wall, house[1].wall, strict=True):
        np.testing.assert_array_equal(one(rng).solids.T_world_unit, other(rng).solids.T_world_unit)
        assert one(rng) is one(rng)
    rooms = [indoor_scene(np.random.default_rng(n), np.random.default_rng(7)) for n in range(2)]
    assert len(rooms[0].solids) != len(rooms[1].solids)


def test_the_camera_stays_in_the_room_at_a_persons_height():
    for index in range(10):
        rng = np.random.default_rng([1, index])
        scene = indoor_scene(rng)
        poses = camera_path(rng, scene, 20, 4)
        assert poses.shape == (20, 4, 4, 4)
        x, y, z = np.moveaxis(poses[..., :3, 3], -1, 0)
        assert (x > scene.floors[:, 0].min() - 0.3).all()
        assert (x < scene.floors[:, 2].max() + 0.3).all()
        assert (y < scene.floors[:, 3].max() + 0.3).all()
        assert 0.7 < z.min() < z.max() < 2.1
        assert (poses[..., 2, 1] < 0).all()  # down is down
