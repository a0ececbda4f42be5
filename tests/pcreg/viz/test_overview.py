import numpy as np
import pytest
from PIL import Image

from pcreg.geometry.overlap import distances_to
from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.viz.overview import SOURCE, TARGET, overview, residual_colors, shown, upright
from pcreg.viz.render import ABOVE, BACKGROUND, FRONT, render

SHEET = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 40), [0.0]), axis=-1).reshape(-1, 3)
UP = np.array([0.0, 0.0, 1.0])


def test_the_nearer_cloud_hides_the_other():
    red, green = np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
    image = render([SHEET, SHEET + UP], [red, green], ABOVE, size=(60, 60), splat=5)
    assert image.shape == (60, 60, 3)
    centre = image[30, 30]
    assert centre[1] > centre[0]
    image = render([SHEET, SHEET - UP], [red, green], ABOVE, size=(60, 60), splat=5)
    assert image[30, 30, 0] > image[30, 30, 1]


def test_where_nothing_is_the_background_shows():
    image = render([SHEET], [SOURCE], ABOVE, size=(100, 60), splat=3)
    np.testing.assert_array_equal(image[:, :15], np.broadcast_to(BACKGROUND, (60, 15, 3)))
    assert not np.allclose(image[30, 50], BACKGROUND)
    assert 0 <= image.min() < image.max() <= 1


def test_strays_are_not_drawn():
    strays = np.array([[1e6, 0, 0], [0, 0, 50.0]])
    np.testing.assert_array_equal(shown(np.concatenate([strays, SHEET])), SHEET)
    assert shown(np.empty((0, 3))).shape == (0, 3)
    assert len(shown(np.tile(SHEET, (200, 1)))) <= 150_000


def pixels(image: np.ndarray, color: np.ndarray) -> np.ndarray:
    """The mask of pixels of about this hue, however dark."""
    part = image / np.rint(255 * color)
    return (np.ptp(part, axis=2) < 0.06) & (part[..., 0] > 0.4)


@pytest.mark.parametrize(("off", "apart"), [(0.3, 9), (3.0, 90)])
def test_how_far_a_transform_is_off_is_seen_in_a_section(tmp_path, off, apart):
    """Walls stand every ten metres, which are 300 pixels."""
    walls = np.random.default_rng(0).uniform(-20, 20, (60_000, 3)) * [1, 0.75, 0.1]
    walls[:40_000, 0], walls[40_000:, 1] = np.round(walls[:40_000, 0], -1), np.round(walls[40_000:, 1], -1)
    overview(walls, walls, se3(np.eye(3), np.array([off, 0, 0])), tmp_path / "a.png", limit=0.6)
    picture = np.asarray(Image.open(tmp_path / "a.png"))
    assert picture.shape == (930, 1800, 3)
    section = picture[492:840, 10:590].astype(float)
    source, target = (pixels(section, color).sum(0).argmax() for color in (SOURCE, TARGET))
    distance = abs(int(source) - int(target)) % 300
    assert min(distance, 300 - distance) == pytest.approx(apart, abs=3)


@pytest.mark.parametrize("cloud", [SHEET, SHEET[:1], SHEET[:30], SHEET[:40] @ FRONT], ids=len)
@pytest.mark.parametrize("metres", [0.0, 90.0, 1e7])
def test_bare_clouds_and_clouds_that_share_nothing_are_drawn(cloud, metres, tmp_path):
    T = se3(np.eye(3), np.array([metres, 0, 0]))
    overview(cloud, cloud[::-1], T, tmp_path / "a.png", limit=0.1, title="a")
    assert Image.open(tmp_path / "a.png").size == (1800, 930)


def test_half_of_a_sheet_has_a_residual_and_the_other_is_grey():
    T = np.eye(4)
    T[0, 3], T[2, 3] = 0.5, 0.03
    distance = distances_to(SHEET, SHEET, T, 0.1)
    shared = SHEET[:, 0] <= 0.5
    np.testing.assert_allclose(distance[shared], 0.03, atol=0.01)
    assert np.isinf(distance[SHEET[:, 0] > 0.62]).all()
    colors = residual_colors(np.array([0.0, 0.1, np.inf]), 0.1)
    assert colors[0, 2] > colors[0, 1]  # blue
    assert colors[1, 0] > colors[1, 2]  # yellow
    assert np.ptp(colors[2]) == 0


def test_z_stays_up_and_x_runs_along_the_cloud():
    slab = np.random.default_rng(0).uniform(-1, 1, (2000, 3)) * [3, 2, 0.5] + [100, 50, 7]
    turned = se3(rotation_about((0, 0, 1), 30), np.zeros(3))
    T = upright(transform(turned, slab))
    np.testing.assert_allclose(np.abs((T @ turned)[:3, :3]), np.eye(3), atol=0.1)
    assert T[2, 2] == 1
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1)
    np.testing.assert_allclose(transform(T @ turned, slab).mean(0), 0, atol=1e-9)


def test_what_a_tilted_camera_saw_stands_upright(room):
    """The camera's y axis points down; the floor and other level surfaces show its tilt."""
    up = room.T_world_target[:3, :3].T @ UP
    assert upright(room.target)[2, :3] @ up > np.cos(np.radians(3))
