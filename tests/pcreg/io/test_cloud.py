"""All formats side by side: the same points, dtype and order from each."""

import random

import numpy as np
import pytest

from pcreg.io.cloud import natural, read_cloud
from tests.pcreg.io.cloud_files import ALL, MARKED, POINTS, TEXT, write


@ALL
def test_every_format_gives_the_points_in_order(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, POINTS)
    cloud = read_cloud(path)
    assert cloud.points.dtype == np.float64
    assert (cloud.dropped, cloud.rows) == (0, None)
    np.testing.assert_allclose(cloud.points, POINTS, rtol=1e-7)


@pytest.mark.parametrize("suffix", MARKED)
def test_rows_that_are_no_points_are_dropped_and_counted(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.insert(POINTS, [1, 1, 3], [[np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf]], axis=0))
    cloud = read_cloud(path)
    assert (cloud.dropped, cloud.rows.tolist()) == (3, [0, 3, 4])
    np.testing.assert_allclose(cloud.points, POINTS, rtol=1e-7)


@pytest.mark.parametrize("suffix", [".ply", *TEXT, ".npy", ".npz", ".las", ".laz", ".e57", ".obj", ".off"])
def test_map_coordinates_keep_their_millimetres(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    far = POINTS + np.array([500_000.123, 4_000_000.456, 100.789])
    write(path, far)
    atol = {".las": 1e-4, ".laz": 1e-4, ".e57": 1e-6}.get(suffix, 1e-8)
    np.testing.assert_allclose(read_cloud(path).points, far, rtol=0, atol=atol)


@pytest.mark.parametrize("suffix", [".ply", ".pcd", ".pts", ".npy", ".npz", ".las", ".laz", ".off", ".stl"])
def test_no_points_at_all_are_an_empty_cloud(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.empty((0, 3)))
    assert read_cloud(path).points.shape == (0, 3)


def test_numbers_are_counted_and_the_order_is_fixed():
    names = ["scan", "scan_2", "scan_02", "scan_10", "scan_10b", "scan_\u00b2", "1", "01"]
    ordered = sorted(names, key=natural)
    assert ordered.index("scan_2") < ordered.index("scan_10") < ordered.index("scan_10b")
    for seed in range(5):
        assert sorted(random.Random(seed).sample(names, len(names)), key=natural) == ordered
