"""What a GPU samples of points sorted by cell: on a GPU, or else in Triton's interpreter."""

import pytest
import torch

from pcreg.kernels.grid import grid_sample
from tests.kernels.clouds import DEVICE, ON_GPU, random_batch

index = pytest.importorskip("pcreg.kernels.triton.search.index", reason="no triton for this platform")

MANY = 40 if ON_GPU else 1  # times as many points


def test_representatives_are_those_of_grid_sampling():
    points, lengths = random_batch([MANY * length for length in (40, 0, 1, 30)])
    points[5] = points[4]  # equally near: the first row is kept
    lower = points.amin(0).double() - 0.1
    frame = torch.cat([lower, points.amax(0).double(), torch.tensor([0.2], dtype=torch.float64)]).to(DEVICE)
    found = index.CellIndex.build(
        points.to(DEVICE), index.cloud_numbers(lengths.to(DEVICE), len(points)), frame, 0.2, len(lengths)
    )
    rows, picked, cloud = found.representatives()
    expected = grid_sample(points, lengths, 0.2, lower.expand(len(lengths), 3))
    assert torch.equal(rows.cpu(), expected)
    assert torch.equal(picked.cpu(), points[expected])
    assert torch.equal(cloud.cpu(), index.cloud_numbers(lengths, len(points))[expected])


def test_of_equally_near_points_the_smallest_coordinates_are_kept():
    """Each pair lies mirrored about the centre of its cell, the larger coordinates first."""
    points = torch.full((6, 3), 0.5) + torch.arange(3).repeat_interleave(2)[:, None]
    for axis in range(3):
        points[2 * axis, axis] += 0.25
        points[2 * axis + 1, axis] -= 0.25
    frame = torch.tensor([0.0] * 3 + [3.0] * 3 + [1.0], dtype=torch.float64, device=DEVICE)
    cloud = torch.zeros(6, dtype=torch.int32, device=DEVICE)
    rows, _, _ = index.CellIndex.build(points.to(DEVICE), cloud, frame, 1.0, 1).representatives()
    assert rows.tolist() == [1, 3, 5]
    assert grid_sample(points, torch.tensor([6]), 1.0, torch.zeros(1, 3)).tolist() == [1, 3, 5]
