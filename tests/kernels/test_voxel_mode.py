"""With snap=True the convolution is a sparse voxel convolution, equal to a dense one."""

import pytest
import torch
from torch.nn.functional import conv3d, conv_transpose3d

from pcreg.kernels.conv import point_conv
from tests.kernels.clouds import native_triplets

SIDE = 8


def seeded(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def voxel_triplets(centres, cells, stride=1, kernel_size=3):
    """Triplets of centres (N, 3) and points in cells (P, 3) of a single cloud."""
    places = cells.double()
    centres = places if centres is cells else stride * centres.double()
    lengths = torch.tensor([len(centres)]), torch.tensor([len(cells)])
    return native_triplets(centres, places, *lengths, 1.0, kernel_size, kernel_size // 2 + 0.5, cube=True)


def dense(weight):
    """Weights (t^3, 1, C, M) as torch's (M, C, t, t, t)."""
    return weight[:, 0].permute(2, 1, 0).unflatten(2, (round(len(weight) ** (1 / 3)),) * 3)


def at(grid, cells):
    return grid[:, cells[:, 0], cells[:, 1], cells[:, 2]].T


def grid_of(features, cells, side):
    grid = torch.zeros(features.shape[1], side, side, side)
    grid[:, cells[:, 0], cells[:, 1], cells[:, 2]] = features.T
    return grid


@pytest.fixture
def cells():
    """Occupied voxels of a random SIDE^3 grid."""
    return torch.nonzero(seeded(SIDE, SIDE, SIDE) < -0.5)


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_equals_conv3d(cells, kernel_size, stride):
    features, weight = seeded(len(cells), 4), seeded(kernel_size**3, 1, 4, 6, seed=1)
    centres = cells if stride == 1 else torch.unique(cells // 2, dim=0)
    result = point_conv(features, weight, voxel_triplets(centres, cells, stride, kernel_size))
    grid = grid_of(features, cells, SIDE)
    expected = conv3d(grid[None], dense(weight), stride=stride, padding=kernel_size // 2)[0]
    torch.testing.assert_close(result, at(expected, centres), rtol=1e-5, atol=1e-5)


def test_transposed_equals_conv_transpose3d(cells):
    coarse, weight = torch.unique(cells // 2, dim=0), seeded(27, 1, 4, 6, seed=1)
    features = seeded(len(coarse), 4, seed=2)
    result = point_conv(features, weight, voxel_triplets(coarse, cells, stride=2).transposed)
    grid, weight = grid_of(features, coarse, SIDE // 2), dense(weight).transpose(0, 1)
    expected = conv_transpose3d(grid[None], weight, stride=2, padding=1, output_padding=1)[0]
    torch.testing.assert_close(result, at(expected, cells), rtol=1e-5, atol=1e-5)
