import numpy as np
import pytest

from pcreg.geometry.se3 import transform
from pcreg.viz.overview import SOURCE, TARGET, overview, principal_axes, residual_colors, residuals, shown
from pcreg.viz.render import BACKGROUND, from_above, oblique, render

SHEET = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 40), [0.0]), axis=-1).reshape(-1, 3)
UP = np.array([0.0, 0.0, 1.0])


def test_the_nearer_cloud_hides_the_other():
    red, green = np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
    image = render([SHEET, SHEET + UP], [red, green], from_above(), size=(60, 60), splat=5)
    assert image.shape == (60, 60, 3)
    centre = image[30, 30]
    assert centre[1] > centre[0]
    image = render([SHEET, SHEET - UP], [red, green], from_above(), size=(60, 60), splat=5)
    assert image[30, 30, 0] > image[30, 30, 1]


def test_where_nothing_is_the_background_shows():
    image = render([SHEET], [SOURCE], from_above(), size=(100, 60), splat=3)
    np.testing.assert_array_equal(image[:, :15], np.broadcast_to(BACKGROUND, (60, 15, 3)))
    assert not np.allclose(image[30, 50], BACKGROUND)
    assert image.min() >= 0
    assert image.max() <= 1


@pytest.mark.parametrize("rows", [7, 1000])
def test_a_picture_does_not_depend_on_its_bands(monkeypatch, rows):
    step = np.concatenate([SHEET, SHEET[SHEET[:, 0] > 0.5] + UP / 2])
    view = [step], [TARGET], oblique()
    image = render(*view, size=(200, 90), splat=5)
    monkeypatch.setattr("pcreg.viz.render.BAND_ROWS", rows)
    np.testing.assert_array_equal(render(*view, size=(200, 90), splat=5), image)


def test_strays_are_not_drawn():
    strays = np.array([[1e6, 0, 0], [0, 0, 50.0]])
    np.testing.assert_array_equal(shown(np.concatenate([strays, SHEET])), SHEET)
    assert shown(np.empty((0, 3))).shape == (0, 3)
    assert len(shown(np.tile(SHEET, (200, 1)))) <= 150_000


def test_overview_is_written_whole(tmp_path):
    from matplotlib.image import imread

    T = np.eye(4)
    T[0, 3] = 0.5
    overview(SHEET, SHEET, T, tmp_path / "a.png", limit=0.1, title="sheets", ceiling=1.0)
    picture = imread(tmp_path / "a.png")
    assert picture.shape == (900, 1800, 3)
    for column in np.split(picture[100:800], 3, axis=1):
        assert (column < 0.99).any(2).mean() > 0.05
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_half_of_a_sheet_has_a_residual_and_the_other_is_grey():
    T = np.eye(4)
    T[0, 3], T[2, 3] = 0.5, 0.03
    distance = residuals(SHEET, SHEET, T, 0.1)
    shared = SHEET[:, 0] <= 0.5
    np.testing.assert_allclose(distance[shared], 0.03, atol=0.01)
    assert np.isinf(distance[SHEET[:, 0] > 0.62]).all()
    colors = residual_colors(np.array([0.0, 0.1, np.inf]), 0.1)
    assert colors[0, 2] > colors[0, 1]  # blue
    assert colors[1, 0] > colors[1, 2]  # yellow
    assert np.ptp(colors[2]) == 0


def test_principal_axes_lay_a_cloud_flat_and_keep_it_upright():
    slab = np.random.default_rng(0).uniform(-1, 1, (2000, 3)) * [3, 2, 0.5] + [100, 50, 7]
    T = principal_axes(slab)
    np.testing.assert_allclose(np.abs(T[:3, :3]), np.eye(3), atol=0.1)
    assert T[2, 2] > 0
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1)
    np.testing.assert_allclose(transform(T, slab).mean(0), 0, atol=1e-9)
