"""Cells by distance and heights: their definition, their invariance, and the kernels that find them."""

import numpy as np
import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.cpu.neighbors import surface_normals
from pcreg.kernels.cpu.stencil import ppf_cells
from pcreg.kernels.neighbors import radius_search
from tests.kernels.clouds import DEVICE


def normals_of_batch(points, lengths, viewpoints, radius):
    pairs = radius_search(points, points, lengths, lengths, radius)
    return torch.from_numpy(surface_normals(*(each.numpy() for each in (points, viewpoints, *pairs))))


def by_kernels(points, lengths, viewpoints, radius):
    """Normals by the kernels, on a GPU or else in Triton's interpreter."""
    plane_fit = pytest.importorskip("pcreg.kernels.triton.plane_fit", reason="no triton for this platform")
    points, lengths, viewpoints = (each.to(DEVICE) for each in (points, lengths, viewpoints))
    pairs = radius_search(points, points, lengths, lengths, radius)
    return plane_fit.surface_normals(points, viewpoints, *pairs).cpu()


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_cells_are_steps_of_distance_and_of_both_heights(kernel_size):
    rng = np.random.default_rng(0)
    offset, own, other = (rng.normal(size=(200, 3)) for _ in range(3))
    offset[0] = 0.0
    own, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (own, other))
    found = ppf_cells(offset.T, own.T, other.T, 2.0, kernel_size)
    assert found.tolist() == [
        reference.ppf_cell(*each, 2.0, kernel_size) for each in zip(offset, own, other, strict=True)
    ]
    assert set(found.tolist()) <= set(range(kernel_size**3))


def test_cells_by_hand():
    """Points beside a centre, above it, up a wall, down a cliff, and on the centre.

    The last centre has no normal, so that the height of its point is 0.
    """
    up, wall, cliff, none = (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    offset = (0.5, 0.0, 0.0), (0.0, 0.0, 0.9), (0.6, 0.0, 0.6), (0.6, 0.0, -0.6), none, (0.1, 0.2, 0.9)
    own, other = (up, up, up, up, up, none), (up, up, wall, cliff, up, up)
    cells = [(1, 1, 1), (2, 2, 0), (2, 2, 2), (2, 0, 0), (0, 1, 1), (2, 1, 0)]
    found = ppf_cells(*(np.array(each).T for each in (offset, own, other)), 1.0, 3)
    assert found.tolist() == [9 * s + 3 * a + b for s, a, b in cells]


@pytest.mark.parametrize("normals_by", [normals_of_batch, by_kernels])
def test_normals_are_the_least_directions_of_neighbourhoods(normals_by):
    rng = np.random.default_rng(2)
    points = torch.from_numpy(rng.normal(size=(300, 3)) * [1.0, 0.7, 0.2])
    lengths = torch.tensor([200, 0, 100])
    origins = torch.tensor([[0.0, 0.0, 9.0], [0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
    seen_from = origins.repeat_interleave(lengths, 0)
    normals = normals_by(points, lengths, seen_from, 0.6)
    pairs = reference.radius_search(points, points, lengths, lengths, 0.6)
    checked = 0
    for row in range(300):
        near = points[[j for i, j in pairs if i == row]].numpy()
        if len(near) < 4:
            assert not normals[row].any()
            continue
        values, vectors = np.linalg.eigh(np.cov(near.T))
        if values[1] > 1.05 * values[0]:
            assert abs(vectors[:, 0] @ normals[row].numpy()) > 1 - 1e-6
            assert normals[row] @ (origins[0 if row < 200 else 2] - points[row]) >= 0
            checked += 1
    assert checked > 200


def test_normals_taken_a_part_at_a_time_are_the_same_to_the_last_bit(monkeypatch):
    points = torch.from_numpy(np.random.default_rng(5).normal(size=(300, 3))).float()
    lengths, origins = torch.tensor([200, 0, 100]), torch.zeros(300, 3)
    wanted = normals_of_batch(points, lengths, origins, 0.6)
    monkeypatch.setattr("pcreg.kernels.cpu.neighbors.ROWS_AT_ONCE", 7)
    assert torch.equal(normals_of_batch(points, lengths, origins, 0.6), wanted)
