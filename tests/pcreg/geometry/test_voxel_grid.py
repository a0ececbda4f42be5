import numpy as np
import pytest
import torch

from pcreg.geometry import voxel_grid
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.kernels.grid import grid_sample
from pcreg.runtime.errors import InputError


def test_thinning_keeps_the_point_nearest_the_centre_of_each_cell():
    points = np.array([[0.01, 0.01, 0.01], [0.06, 0.05, 0.05], [-0.01, 0.05, 0.05], [0.09, 0.09, 0.09]])
    assert sorted(voxel_downsample(points, 0.1)) == [1, 2]  # one cell on either side of x = 0
    assert voxel_downsample(points[:0], 0.1).shape == (0,)


def test_a_thinned_cloud_is_left_whole():
    rng = np.random.default_rng(0)
    once = rng.uniform(-1, 1, (5000, 3))
    once = once[voxel_downsample(once, 0.1)]
    np.testing.assert_array_equal(voxel_downsample(once, 0.1), np.arange(len(once)))
    order = rng.permutation(len(once))  # rows come in the order of the cells, whatever that of the points
    np.testing.assert_array_equal(once[order][voxel_downsample(once[order], 0.1)], once)


def test_real_fragments_are_left_whole(real_data):
    points = read_cloud(real_data / "indoor/3dmatch/fragments/7-scenes-redkitchen/cloud_bin_0.ply").points
    assert len(voxel_downsample(points, 0.025)) == len(points)


@pytest.mark.parametrize(
    ("block", "origin", "table"),
    [(1 << 20, (0, 0, 0), 3000), (1000, (0.013, -0.4, 7), 16), (1000, (0.013, -0.4, 7), 0)],
)
def test_the_rows_are_those_of_the_operator_however_they_are_found(table, block, origin, monkeypatch):
    monkeypatch.setattr(voxel_grid, "BLOCK_POINTS", block)
    monkeypatch.setattr(voxel_grid, "MAX_TABLE_CELLS", table)
    rng = np.random.default_rng(0)
    origin = np.array(origin, dtype=np.float64)
    lattice = rng.integers(-20, 20, (5000, 3)) * 0.01  # twins, and points equally far from a centre
    for points in (rng.normal(0, 3, (5000, 3)), lattice, 5e6 + rng.normal(0, 3, (5000, 3))):
        for voxel in (0.02, 0.1):
            of_operator = grid_sample(
                torch.from_numpy(points), torch.tensor([5000]), voxel, torch.from_numpy(origin)[None]
            )
            np.testing.assert_array_equal(voxel_downsample(points, voxel, origin), of_operator)


def test_a_voxel_that_cannot_number_its_cells_is_refused():
    with pytest.raises(InputError, match="too small"):
        voxel_downsample(np.array([[0.0, 0, 0], [1e9, 1e9, 1e9]]), 1e-6)
