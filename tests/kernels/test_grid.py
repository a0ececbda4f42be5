import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.grid import grid_sample
from tests.kernels.clouds import DEVICE, random_batch


def by_kernels(points, lengths, size, origin):
    """Sample by the kernels, on a GPU or else in Triton's interpreter."""
    index = pytest.importorskip("pcreg.kernels.triton.search.index", reason="no triton for this platform")
    return index.sample_cells(*(each.to(DEVICE) for each in (points, lengths)), size, origin.to(DEVICE))


both = pytest.mark.parametrize("sample", [grid_sample, by_kernels])


def centred_sample(points, lengths, size, sample=grid_sample):
    """In a grid that has a cell's centre at zero, so that a lattice of that pitch lies on centres."""
    return sample(points, lengths, size, torch.full((len(lengths), 3), -size / 2, dtype=torch.float64)).cpu()


@pytest.mark.parametrize(("size", "offset"), [(0.01, -5.3), (0.13, 1e7), (0.5, 0.0), (3.0, -5.3)])
@both
def test_equals_the_definition(size, offset, sample):
    points, lengths = random_batch([40, 0, 1, 90], dtype=torch.float64)
    points, origins = points + offset, offset + torch.arange(12, dtype=torch.float64).view(4, 3) / 7
    found = sample(points, lengths, size, origins).tolist()
    assert found == reference.grid_sample(points, lengths, size, origins)


@both
def test_the_point_nearest_the_centre_is_kept_unmoved(sample):
    points = torch.tensor([[0.0, 0, 0], [0.9, 0, 0], [1.1, 0, 0]])  # cells of 1: centred on 0 and on 1
    assert centred_sample(points, torch.tensor([3]), 1.0, sample).tolist() == [0, 1]


@both
def test_sampling_does_not_depend_on_the_order_of_points(sample):
    points = torch.cartesian_prod(*[torch.arange(6.0)] * 3)  # eight equally near points per cell
    permutation = torch.randperm(len(points), generator=torch.Generator().manual_seed(3))
    length = torch.tensor([len(points)])
    kept = points[centred_sample(points, length, 2.0, sample)]
    assert torch.equal(points[permutation][centred_sample(points[permutation], length, 2.0, sample)], kept)


@both
def test_of_equally_near_points_the_smallest_coordinates_are_kept(sample):
    """Each pair lies mirrored about the centre of its cell, the larger coordinates first."""
    points = torch.full((6, 3), 0.5) + torch.arange(3).repeat_interleave(2)[:, None]
    for axis in range(3):
        points[2 * axis, axis] += 0.25
        points[2 * axis + 1, axis] -= 0.25
    assert sample(points, torch.tensor([6]), 1.0, torch.zeros(1, 3)).tolist() == [1, 3, 5]


def test_empty_batch():
    assert centred_sample(torch.zeros(0, 3), torch.tensor([0, 0]), 0.1).tolist() == []


@both
def test_too_many_cells_are_refused(sample):
    points = torch.tensor([[0.0, 0, 0], [1e9, 1e9, 1e9]])
    with pytest.raises(ValueError, match="take larger cells"):
        centred_sample(points, torch.tensor([2]), 1e-3, sample)
