"""Beams are separated in scans whose beams are known."""

import numpy as np
import pytest

from pcreg.datasets.altered import beam_numbers

VLP16 = np.linspace(-15, 15, 16)
HDL64 = np.concatenate([np.linspace(2, -8.33, 32), np.linspace(-8.83, -24.33, 32)])  # not evenly spaced


def scan(elevations, columns=400, wobble=0.0, seed=0, walls=False):
    """Points (beams x columns, 3), beam after beam in turns about the z axis, and the beam of each.

    Ranges are random, or those of four `walls`.
    """
    rng = np.random.default_rng(seed)
    shape = len(elevations), columns
    azimuth = np.broadcast_to(np.linspace(0, 2 * np.pi, columns, endpoint=False), shape)
    azimuth = azimuth + rng.uniform(0, 1e-3, shape)
    elevation = np.radians(np.asarray(elevations)[:, None] + rng.normal(0, wobble, shape))
    flat = np.cos(elevation)
    rays = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], -1)
    ranges = 8 / np.abs(rays[..., :2]).max(-1) if walls else rng.uniform(2, 60, shape)
    points = rays * ranges[..., None]
    return points.reshape(-1, 3), np.repeat(np.arange(len(elevations)), columns)


@pytest.mark.parametrize("elevations", [VLP16, np.sort(HDL64)], ids=["16 beams", "64 beams"])
def test_points_in_any_order_are_told_apart_by_elevation(elevations):
    points, beams = scan(elevations, wobble=0.04)
    order = np.random.default_rng(1).permutation(len(points))
    found = beam_numbers(points[order])
    assert found.max() + 1 == len(elevations)
    assert (found == beams[order]).mean() > 0.999


def test_a_file_written_beam_after_beam_is_counted_in_its_order():
    points, beams = scan(HDL64, walls=True)
    points[:, 2] += np.where(beams < 32, 0.2, 0.05)  # lasers stand above one another: elevations overlap
    np.testing.assert_array_equal(beam_numbers(points), beams)
    nothing = [100, 10_000]  # rows of zeros, where nothing came back
    points[nothing], beams[nothing] = 0, -1
    np.testing.assert_array_equal(beam_numbers(points), beams)
    points = np.delete(points, nothing, axis=0)
    clockwise = points * [1, -1, 1]
    np.testing.assert_array_equal(beam_numbers(clockwise), np.delete(beams, nothing))


def test_what_has_no_beams_is_said_to_have_none():
    rng = np.random.default_rng(0)
    elevation, azimuth = rng.uniform(-0.4, 0.4, (2, 20_000))
    ball = np.stack([np.cos(elevation) * np.cos(azimuth), np.sin(azimuth), np.sin(elevation)], 1)
    assert beam_numbers(ball) is None
    assert beam_numbers(np.empty((0, 3))) is None
