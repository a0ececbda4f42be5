import numpy as np
import pytest

from pcreg.arrays import is_on_host, to_host
from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.models.resunet import Architecture, ResUNet
from pcreg.runtime.errors import InputError
from tests.pcreg.devices import DEVICES


def wavy_sheet(n=30, spacing=0.05):
    """(n * n, 3): a curved surface 3 m in front of the sensor, with a point about every `spacing` metres."""
    u, v = np.meshgrid(np.arange(n) * spacing, np.arange(n) * spacing, indexing="ij")
    w = 3 + 0.2 * np.sin(3 * u) * np.cos(2 * v)
    return np.stack([u, v, w], axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_clouds_of_hardly_any_points(n):
    points = np.array([[0, 0, 1], [0.5, 0, 1], [0, 0.5, 1]])[:n]
    for descriptor, length in ((FPFH(), 33), (FCGF(ResUNet(Architecture(0.1)), scales=[1]), 32)):
        described = descriptor.describe(points)
        assert described.points.shape == (n, 3)
        assert described.features.shape == (n, length)


@pytest.mark.parametrize("viewpoints", [None, np.tile([0.5, 0.0, 0.0], (900, 1))])
def test_histograms_go_to_the_device(viewpoints):
    points = wavy_sheet() + 1e-3 * np.random.default_rng(0).normal(size=(900, 3))
    here, there = (FPFH(0.05, device=device).describe(points, viewpoints) for device in DEVICES)
    assert not is_on_host(there.features)
    np.testing.assert_array_equal(to_host(there.points), here.points)
    np.testing.assert_array_equal(to_host(there.features), here.features)


def test_histograms_do_not_change_far_from_the_sensor():
    points, offset = wavy_sheet(), np.array([5e5, 5.4e6, 100.0])
    near = FPFH(0.02).describe(points, np.zeros_like(points))  # keeps all points
    far = FPFH(0.02).describe(points + offset, np.tile(offset, (len(points), 1)))
    assert np.abs(near.features - far.features).mean() < 0.1 < np.abs(near.features).mean()


def test_rows_that_are_no_points_are_refused_and_float32_is_taken():
    points = wavy_sheet()
    singles = points.astype(np.float32)
    here, there = (FPFH(0.05).describe(each) for each in (singles.astype(float), singles))
    assert there.points.dtype == np.float64
    np.testing.assert_array_equal(here.points, there.points)
    for given, words in (
        ((points[:, :2],), r"points of shape \(900, 2\)"),
        ((np.vstack([points, [[np.nan] * 3]]),), "points hold NaN"),
        ((points, np.zeros(3)), "3 viewpoints of 900 points"),
    ):
        with pytest.raises(InputError, match=words):
            FPFH(0.05).describe(*given)
    for voxel in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="is not a size"):
            FPFH(voxel)


def test_scales_are_described_side_by_side():
    points = wavy_sheet(40)
    points += np.random.default_rng(0).normal(0, 0.01, points.shape)  # no two are as near to a third
    network = ResUNet(Architecture(voxel=0.05))
    descriptors = [FCGF(network, scales=scales) for scales in ([1], [1, 2])]
    assert descriptors[0].fingerprint != descriptors[1].fingerprint
    one, both = (each.describe(points) for each in descriptors)
    coarse = FCGF(network, scales=[1]).at(0.1).describe(one.points)
    assert np.array_equal(both.points, one.points)
    assert both.features.dtype == one.features.dtype == np.float32
    assert np.allclose(np.linalg.norm(both.features, axis=1), 1, atol=1e-6)
    fine, wide = np.split(both.features * np.sqrt(2), 2, axis=1)
    assert np.allclose(fine, one.features, atol=1e-6)
    nearest = np.linalg.norm(one.points[:, None] - coarse.points, axis=2).argmin(1)
    assert np.allclose(wide, coarse.features[nearest], atol=1e-6)


@pytest.mark.parametrize("scales", [[], [2], [1, 0.5], [1, 1], [1, float("inf")], [1, "2"], 1])
def test_scales_that_cannot_be_used(scales):
    with pytest.raises(InputError, match="scales="):
        FCGF(ResUNet(Architecture()), scales=scales)
