"""Rows of four or five float32 in .bin: recognized by content, stated, or refused."""

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from pcreg.io.formats.arrays import likely_columns
from tests.pcreg.io.cloud_files import refusal


@pytest.fixture
def scan():
    """x y z intensity ring time: 4000 points (N, 6) float32 of 32 rings over a floor and four walls."""
    ring, turn = np.meshgrid(np.arange(32), np.linspace(0.01, 6.27, 125), indexing="ij")
    down = np.radians(ring - 26.0)
    distance = np.minimum(8 / np.abs(np.cos(turn)), 6 / np.abs(np.sin(turn)))
    distance = np.minimum(distance, 1.8 / np.tan(np.maximum(-down, 0.01)))
    rng = np.random.default_rng(0)
    columns = (
        distance * np.cos(turn),
        distance * np.sin(turn),
        distance * np.tan(down),
        rng.integers(0, 60, ring.shape),
    )
    time = np.linspace(0, 0.05, ring.size).reshape(ring.shape)
    return np.stack([*columns, ring, time], axis=-1).reshape(-1, 6).astype("<f4")


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("columns", [4, 5])
@pytest.mark.parametrize("count", [4000, 3997])  # 4000 rows of five are 5000 rows of four as well
def test_kitti_and_nuscenes_are_told_apart_by_content(scan, tmp_path, columns, count, shuffled):
    rows = scan[np.random.default_rng(0).permutation(len(scan))] if shuffled else scan
    rows = rows[:count, :columns]
    rows.tofile(tmp_path / "a.bin")
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.bin").points, rows[:, :3].astype(np.float64))


@pytest.mark.parametrize("columns", [3, 6])
def test_rows_of_another_length_are_refused_until_it_is_stated(scan, tmp_path, columns):
    rows = np.ascontiguousarray(scan[:, :columns])
    rows.tofile(tmp_path / "a.bin")
    assert f"rows of {columns} numbers" in (words := refusal(tmp_path / "a.bin"))
    assert "--columns" in words
    stated = read_cloud(tmp_path / "a.bin", columns=columns)
    np.testing.assert_array_equal(stated.points, rows[:, :3].astype(np.float64))


def test_statements_that_cannot_be_true(scan, tmp_path):
    scan[:3999, :5].copy().tofile(tmp_path / "a.bin")
    for columns in (4, 2, 0, -5, 33):
        assert "columns" in refusal(tmp_path / "a.bin", columns=columns)
    (tmp_path / "a.bin").write_bytes(scan[:, :5].tobytes()[:-12])
    assert "truncated" in refusal(tmp_path / "a.bin")


def test_what_is_not_finite_does_not_hinder(scan):
    scan[::3, :3] = np.nan
    assert likely_columns(np.nan_to_num(scan[:, :5].ravel(), nan=np.float32(1e38))) == 5


@pytest.mark.parametrize("name", ["hdl64_city", "balm_handheld"])
def test_real_scans(real_data, name):
    kept = np.load(real_data / f"lidar/{name}/scans.npz")
    columns = [kept[axis].astype("f4") * np.float32(kept["unit_m"]) for axis in "xyz"]
    rows = np.stack([*columns, kept["intensity"].astype("f4") / 255], axis=1)
    for scan in np.split(rows, np.cumsum(kept["lengths"])[:-1])[::10]:
        ring = np.clip(np.degrees(np.arctan2(scan[:, 2], np.hypot(scan[:, 0], scan[:, 1]))) // 2 + 20, 0, 31)
        assert likely_columns(scan.ravel()[: 1 << 14]) == 4
        assert likely_columns(np.c_[scan, ring.astype("f4")].ravel()[: 1 << 14]) == 5
