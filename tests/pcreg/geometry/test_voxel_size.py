from collections import Counter

import numpy as np
import pytest

from pcreg.geometry import voxel_size
from pcreg.geometry.se3 import random_rotation, se3, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.geometry.voxel_size import MAX_CELLS, Sample, extent
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room


def voxel_of(points: np.ndarray) -> float:
    return Sample.of(points, "a").voxel()


@pytest.fixture
def scan():
    return stored_room(1).source


def test_a_scan_fills_as_many_cells_as_wanted(scan):
    kept = voxel_downsample(scan, voxel_of(scan))
    assert 0.8 * MAX_CELLS < len(kept) < 1.5 * MAX_CELLS


def test_a_small_cloud_keeps_two_and_a_half_points_per_cell(scan):
    few = scan[:: len(scan) // 4000]
    assert len(few) / len(voxel_downsample(few, voxel_of(few))) == pytest.approx(2.5, rel=0.25)


def test_neither_repetition_nor_unit_place_direction_and_strays_matter_much(scan):
    rng = np.random.default_rng(0)
    few, voxel = scan[:: len(scan) // 4000], voxel_of(scan)
    assert voxel_of(np.repeat(few, 30, axis=0)) == pytest.approx(voxel_of(few), rel=0.05)
    for factor in (0.001, 1000.0):
        assert voxel_of(scan * factor) == pytest.approx(factor * voxel, rel=0.05)
    moved = transform(se3(random_rotation(rng), np.array([5e5, 4e6, 100])), scan)
    assert voxel_of(moved) == pytest.approx(voxel, rel=0.15)
    strays = rng.uniform(-500, 500, (len(scan) // 100, 3))
    assert voxel_of(rng.permutation(np.concatenate([scan, strays]))) == pytest.approx(voxel, rel=0.1)


def test_of_the_rings_of_a_lidar_on_bare_ground_only_the_outermost_count_as_outliers():
    radius, turn = np.meshgrid(1.7 / np.tan(np.linspace(0.4, 0.03, 40)), np.arange(0, 2 * np.pi, 0.01))
    ground = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(radius.shape, -1.7)], axis=-1)
    columns = np.ascontiguousarray((ground.reshape(-1, 3) - ground.min((0, 1))).T, dtype=np.float32)
    left = voxel_size.CellCounts(columns).without_isolated(100.0).columns
    kept = set(map(tuple, left.T.tolist()))
    alone = np.reshape([tuple(point) not in kept for point in columns.T.tolist()], radius.shape)
    assert alone[:, -4:].mean() < 0.6
    assert alone[:, :-4].mean() < 0.01


@pytest.mark.parametrize("points", [np.empty((0, 3)), np.ones((1, 3)), np.ones((500, 3))])
def test_a_cloud_without_a_scale_is_named(scan, points):
    with pytest.raises(InputError, match=r"right\.ply: holds no (two different )?points"):
        Sample.of(points, "right.ply")


def test_extent_ignores_one_stray_in_twenty():
    cube = np.random.default_rng(0).uniform(0, 1, (10_000, 3))
    cube[:200] = 1e6
    assert extent(cube) == pytest.approx(0.9 * np.sqrt(3), rel=0.05)
    assert extent(np.empty((0, 3))) == 0


def test_cells_span_the_gaps_between_the_beams_of_a_lidar():
    """Sixteen beams see the wall of a round room every 0.2 m."""
    rng = np.random.default_rng(0)
    angle, height = rng.uniform(0, 2 * np.pi, 30_000), rng.uniform(0, 3.2, 30_000)
    even = 3 * np.stack([np.cos(angle), np.sin(angle), height / 3], axis=1)
    rings = np.column_stack([even[:, :2], np.floor(height / 0.2) * 0.2])
    assert voxel_of(even) < 0.09
    assert 0.1 < voxel_of(rings) < 0.2


@pytest.mark.parametrize("voxel", [0.2, 1e-4])  # cells whose numbers take 32 bits, and more
def test_cells_are_counted(voxel):
    points = np.abs(np.random.default_rng(0).normal(0, 1, (3, 5000))).astype(np.float32)
    wanted = Counter(map(tuple, np.floor(points.T * np.float32(1 / voxel)).tolist()))
    counts = voxel_size.CellCounts(points)
    assert counts.occupied(voxel) == len(wanted)
    assert counts.crowded(voxel) == sum(count for count in wanted.values() if count >= 8)
