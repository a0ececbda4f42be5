import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.cells import cells_of
from pcreg.kernels.grid import grid_sample
from tests.kernels.clouds import random_batch


def centred_sample(points, lengths, size):
    """In a grid that has a cell's centre at zero, so that a lattice of that pitch lies on centres."""
    return grid_sample(points, lengths, size, torch.full((len(lengths), 3), -size / 2, dtype=torch.float64))


@pytest.mark.parametrize("size", [0.01, 0.13, 0.5, 3.0])
@pytest.mark.parametrize("offset", [0.0, -5.3, 1e7])
def test_equals_the_definition(size, offset):
    points, lengths = random_batch([40, 0, 1, 90], dtype=torch.float64)
    points, origins = points + offset, offset + torch.arange(12, dtype=torch.float64).view(4, 3) / 7
    found = grid_sample(points, lengths, size, origins).tolist()
    assert found == reference.grid_sample(points, lengths, size, origins)


def test_cells_are_floors_not_truncations():
    x = torch.tensor([-0.01, 0.01, 0.0499, 0.0251, -0.0251], dtype=torch.float64)
    points = torch.stack([x, torch.zeros(5), torch.zeros(5)], 1)
    cells = cells_of(points, torch.zeros(5, dtype=torch.int64), torch.zeros(1, 3), 0.025)
    assert cells[:, 0].tolist() == [-1, 0, 1, 1, -2]


def test_lattice_points_each_own_a_cell():
    points = torch.cartesian_prod(*[torch.arange(5.0)] * 3) * 0.1
    assert sorted(centred_sample(points, torch.tensor([125]), 0.1).tolist()) == list(range(125))


def test_the_point_nearest_the_centre_is_kept_unmoved():
    points = torch.tensor([[0.0, 0, 0], [0.9, 0, 0], [1.1, 0, 0]])  # cells of 1: centred on 0 and on 1
    assert centred_sample(points, torch.tensor([3]), 1.0).tolist() == [0, 1]


def test_sampling_does_not_depend_on_the_order_of_points():
    points = torch.cartesian_prod(*[torch.arange(6.0)] * 3)  # eight equally near points per cell
    permutation = torch.randperm(len(points), generator=torch.Generator().manual_seed(3))
    length = torch.tensor([len(points)])
    kept = points[centred_sample(points, length, 2.0)]
    assert torch.equal(points[permutation][centred_sample(points[permutation], length, 2.0)], kept)


def test_duplicates_leave_one():
    assert len(centred_sample(torch.ones(9, 3), torch.tensor([9]), 0.1)) == 1


def test_empty_batch():
    assert centred_sample(torch.zeros(0, 3), torch.tensor([0, 0]), 0.1).tolist() == []


def test_too_many_cells_are_refused():
    points = torch.tensor([[0.0, 0, 0], [1e9, 1e9, 1e9]])
    with pytest.raises(ValueError, match="take larger cells"):
        centred_sample(points, torch.tensor([2]), 1e-3)
