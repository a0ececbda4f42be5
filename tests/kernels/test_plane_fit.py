"""Normals by the kernels, on a GPU or else in Triton's interpreter, against those of arrays."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.arrays import namespace, to_device, to_host
from pcreg.kernels.cpu import neighbors
from pcreg.kernels.triton import plane_fit as kernel
from tests.kernels.clouds import DEVICE
from tests.pcreg.devices import DEVICES


def scattered(spreads, count, seed=0):
    """Scatter matrices (count, 3, 3) with these eigenvalues, turned at random."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return axes * np.array(spreads, dtype=float) @ axes.transpose(0, 2, 1)


def least_directions(scatter, device):
    scatter = to_device(scatter, device)
    entries = (scatter[:, i, j] for i in range(3) for j in range(i, 3))
    return to_host(neighbors.least_direction(namespace(scatter), *entries))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize(
    "spreads", [(1e-9, 1, 2), (0.01, 1, 1), (0.3, 0.5, 3e3), (0, 1e-4, 1), (1e-8, 3e-7, 3e-7)]
)
def test_directions_of_least_scatter_are_eigenvectors(spreads, count, device):
    scatter = scattered(spreads, count)
    found, wanted = least_directions(scatter, device), np.linalg.eigh(scatter).eigenvectors[:, :, 0]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-12)
    assert np.abs((found * wanted).sum(1)).min() > 1 - 1e-7


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spreads", [(0, 0, 1), (1, 1, 1), (0, 0, 0)])
def test_there_is_none_where_two_are_as_small(spreads, device):
    assert not least_directions(scattered(spreads, 5), device).any()


@pytest.mark.parametrize("count", [1, 201])
def test_normals_are_those_of_arrays(count):
    rng = np.random.default_rng(count)
    counts, towards = rng.integers(0, 30, count), rng.normal(size=(count, 3))
    offsets = rng.normal(size=(count, 30, 3)) * [1, 1, 0.1] * (np.arange(30) < counts[:, None])[:, :, None]
    x, y, z = np.moveaxis(offsets, 2, 0)
    sums = np.stack([each.sum(1) for each in (x, y, z, x * x, x * y, x * z, y * y, y * z, z * z)], 1)
    arrays = counts, sums, towards
    found = kernel.plane_normals(*(torch.from_numpy(array).to(DEVICE) for array in arrays)).cpu().numpy()
    np.testing.assert_allclose(found, neighbors.plane_normals(*arrays), atol=1e-7)
