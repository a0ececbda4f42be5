"""Geometry of tensors is that of NumPy's arrays: on a GPU, or else with PyTorch on the CPU."""

import numpy as np
import pytest

from pcreg.arrays import to_host
from pcreg.geometry import se3
from pcreg.geometry.normals import least_spread, normals_of, planar_fraction, scatter_matrices, towards
from pcreg.geometry.viewpoint import estimated_viewpoint, viewpoint_around
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.geometry.voxel_size import Sample, extent
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.preprocess import have_neighbors
from pcreg.runtime.errors import InputError
from tests.pcreg.devices import on_both
from tests.pcreg.scenes import wavy_sheet


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_local_points_are_the_same_to_the_last_bit(rng):
    given = rng.normal(scale=30, size=(1000, 3)) + np.array([4e5, 5e6, 100.0])
    frame = LocalFrame.of(Cloud(given).box)
    here, there = (frame.local(points) for (points,) in on_both(given))
    np.testing.assert_array_equal(to_host(there), here)
    np.testing.assert_array_equal(se3.box(there), se3.box(here))
    T = se3.se3(se3.random_rotation(rng), rng.normal(size=3))
    moved = [se3.mean_displacement(points, T, np.eye(4)) for points in (here, there)]
    assert moved[1] == pytest.approx(moved[0], rel=1e-12)


def test_a_cloud_has_the_same_scale(rng):
    points = np.concatenate([wavy_sheet(4000), rng.uniform(-30, 30, (40, 3))])
    here, there = (Sample.of(each, "sheet") for (each,) in on_both(points))
    assert (here.count, here.kept, here.voxel()) == (there.count, there.kept, there.voxel())
    assert here.extent == pytest.approx(there.extent, rel=1e-12)
    counts = here.cell_counts, there.cell_counts
    np.testing.assert_array_equal(*(to_host(each.columns) for each in counts))
    for voxel in (0.5, 0.1, 1e-5):
        assert len({(each.occupied(voxel), each.crowded(voxel)) for each in counts}) == 1
    assert len({extent(each) for (each,) in on_both(points)}) == 1
    for (dot,) in on_both(np.ones((3, 3))):
        with pytest.raises(InputError, match="no two different points"):
            Sample.of(dot, "dot")


@pytest.mark.parametrize("origin", [None, np.array([0.3, 0.4, -0.7])])
@pytest.mark.parametrize("voxel", [0.05, 1e-4])
def test_the_same_rows_are_kept(origin, voxel):
    points = np.concatenate([wavy_sheet(3000), wavy_sheet(50)])  # some of them twice
    here, there = (voxel_downsample(each, voxel, origin) for (each,) in on_both(points))
    np.testing.assert_array_equal(to_host(there), here)
    for once, again in zip((here, there), on_both(points[here]), strict=True):
        assert len(voxel_downsample(*again, voxel, origin)) == len(once)


def test_the_same_points_have_neighbors(rng):
    points = np.concatenate([wavy_sheet(500), wavy_sheet(20), rng.uniform(-30, 30, (9, 3))])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    for count in (0, 1, 4, 600):
        for (each,) in on_both(points):
            found = to_host(have_neighbors(each, count, 0.1))
            np.testing.assert_array_equal(found, (distances <= 0.1).sum(1) > count)


def test_normals_and_how_planar_a_surface_is():
    points = wavy_sheet(800)
    scatter = [scatter_matrices(*each, 0.2) for each in on_both(points[::3], points)]
    np.testing.assert_allclose(to_host(scatter[1]), scatter[0], atol=1e-12)
    np.testing.assert_allclose(*(to_host(least_spread(each)[0]) for each in scatter), atol=1e-9)
    viewpoint = np.array([0.0, 0, 5])
    here, there = (to_host(towards(viewpoint, each, normals_of(each, 0.2)[0])) for (each,) in on_both(points))
    np.testing.assert_allclose(there, here, atol=1e-6)
    assert len({planar_fraction(normals_of(each, 0.3)[1]) for (each,) in on_both(points)}) == 1


def test_viewpoints_are_estimated_alike(rng):
    sheet = wavy_sheet(900)
    directions = rng.normal(size=(4000, 3))
    ball = directions / np.linalg.norm(directions, axis=1, keepdims=True) * rng.uniform(1, 9, (4000, 1))
    for points in (sheet, ball):
        surface = points[voxel_downsample(points, 0.2)]
        clouds = on_both(points, surface, normals_of(surface, 0.6)[0])
        here, there = (estimated_viewpoint(*each, 0.2) for each in clouds)
        assert here.known == there.known
        np.testing.assert_allclose(there.position, here.position, atol=1e-9)
        here, there = (to_host(viewpoint_around(*each, 0.2).position) for each in clouds)
        assert len(np.unique(here, axis=0)) > 2
        assert np.isclose(there, here).all(1).mean() > 0.99  # others lie on the border of two pixels
