"""The degraded mode is a sparse voxel convolution: equal to a dense one on occupied voxels."""

import pytest
import torch
from torch import Tensor

from pcreg.kernels.conv import point_conv
from pcreg.kernels.stencil import voxel_triplets

SIDE = 8


@pytest.fixture
def voxels():
    """Occupied voxels of a random SIDE^3 grid, and their features as rows and as a dense grid."""
    generator = torch.Generator().manual_seed(0)
    occupied = torch.rand(SIDE, SIDE, SIDE, generator=generator) < 0.3
    cells = torch.nonzero(occupied)
    features = torch.randn(len(cells), 4, generator=generator)
    grid = torch.zeros(4, SIDE, SIDE, SIDE)
    grid[:, cells[:, 0], cells[:, 1], cells[:, 2]] = features.T
    return cells, features, grid


def dense_convolution(grid: Tensor, weight: Tensor, kernel_size: int, stride: int = 1) -> Tensor:
    """conv3d of a dense grid (C, X, Y, Z) with point-convolution weights (t^3, 1, C, M)."""
    padding = (kernel_size - 1) // 2
    dense = _dense_weight(weight, kernel_size)
    return torch.nn.functional.conv3d(grid[None], dense, stride=stride, padding=padding)[0]


def dense_transposed_convolution(grid: Tensor, weight: Tensor, kernel_size: int, stride: int = 2) -> Tensor:
    """conv_transpose3d of a dense grid (C, X, Y, Z), onto a grid `stride` times as fine."""
    dense = _dense_weight(weight, kernel_size).transpose(0, 1)
    padding = (kernel_size - 1) // 2
    return torch.nn.functional.conv_transpose3d(
        grid[None], dense, stride=stride, padding=padding, output_padding=stride - 1
    )[0]


def _dense_weight(weight: Tensor, kernel_size: int) -> Tensor:
    """(t^3, 1, C, M) -> torch's (M, C, t, t, t)."""
    return weight[:, 0].permute(2, 1, 0).unflatten(2, (kernel_size,) * 3)


def at(grid, cells):
    return grid[:, cells[:, 0], cells[:, 1], cells[:, 2]].T


def weight_of(kernel_size):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(kernel_size**3, 1, 4, 6, generator=generator)


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_equals_conv3d(voxels, kernel_size, stride):
    cells, features, grid = voxels
    centres = cells if stride == 1 else torch.unique(cells // 2, dim=0)
    n, m = torch.tensor([len(centres)]), torch.tensor([len(cells)])
    weight = weight_of(kernel_size)
    result = point_conv(features, weight, voxel_triplets(centres, cells, n, m, stride, kernel_size))
    expected = at(dense_convolution(grid, weight, kernel_size, stride), centres)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_transposed_equals_conv_transpose3d(voxels):
    cells, _, _ = voxels
    coarse = torch.unique(cells // 2, dim=0)
    features = torch.randn(len(coarse), 4, generator=torch.Generator().manual_seed(2))
    grid = torch.zeros(4, SIDE // 2, SIDE // 2, SIDE // 2)
    grid[:, coarse[:, 0], coarse[:, 1], coarse[:, 2]] = features.T
    down = voxel_triplets(coarse, cells, torch.tensor([len(coarse)]), torch.tensor([len(cells)]), stride=2)
    result = point_conv(features, weight_of(3), down.transposed)
    expected = at(dense_transposed_convolution(grid, weight_of(3), 3), cells)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_voxels_never_meet_across_clouds():
    cells = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    lengths = torch.tensor([2, 1])
    triplets = voxel_triplets(cells, cells, lengths, lengths)
    assert all((i < 2) == (j < 2) for i, j in zip(triplets.i.tolist(), triplets.j.tolist(), strict=True))
    assert len(triplets) == 5


def test_empty_grid():
    none, length = torch.zeros(0, 3, dtype=torch.int64), torch.tensor([0])
    assert len(voxel_triplets(none, none, length, length)) == 0
