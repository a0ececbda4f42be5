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


@pytest.mark.parametrize(("size", "offset"), [(0.01, -5.3), (0.13, 1e7), (0.5, 0.0), (3.0, -5.3)])
@both
def test_equals_the_definition(size, offset, sample):
    points, lengths = random_batch([40, 0, 1, 90], dtype=torch.float64)
    points, origins = points + offset, offset + torch.arange(12, dtype=torch.float64).view(4, 3) / 7
    found = sample(points, lengths, size, origins).tolist()
    assert found == reference.grid_sample(points, lengths, size, origins)


@both
def test_of_equally_near_points_the_smallest_coordinates_are_kept(sample):
    """Pairs are mirrored about the centre of their cell; the point of larger coordinates comes first."""
    centre = torch.arange(5)[:, None] + 0.5
    offset = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, -1, 0], [0, 1, -1]]) / 4
    points = torch.stack([centre + offset, centre - offset], 1).reshape(10, 3)
    assert sample(points, torch.tensor([10]), 1.0, torch.zeros(1, 3)).tolist() == [1, 3, 5, 7, 9]


@both
def test_too_many_cells_are_refused(sample):
    points = torch.tensor([[0.0, 0, 0], [1e9, 1e9, 1e9]])
    with pytest.raises(ValueError, match="take larger cells"):
        sample(points, torch.tensor([2]), 1e-3, torch.zeros(1, 3))
