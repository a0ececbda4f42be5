"""K-th distances and scatter matrices: by the kernel, by the definition, and by a tree of SciPy."""

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.normals import NEIGHBORS
from pcreg.geometry.normals import scatter_matrices as scatter_by_tree
from pcreg.kernels import neighborhood as definition
from pcreg.kernels.triton import neighborhood as kernel
from tests.kernels.clouds import DEVICE

SIZES = [(1, 1), (17, 63), (16, 64), (33, 200)]


def wavy(M):
    """Points (M, 3) on a surface, some of them twice."""
    rng = np.random.default_rng(M)
    plane = rng.uniform(0, 1, (M, 2))
    points = np.column_stack([plane, 0.1 * np.sin(5 * plane[:, 0])])
    points[M // 2 : M // 2 + 3] = points[0]
    return points


@pytest.fixture(params=[definition, kernel], ids=["definition", "kernel"])
def around(request):
    return request.param


def tensors(*arrays):
    return [torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE) for array in arrays]


@pytest.mark.parametrize(("Q", "M"), SIZES)
@pytest.mark.parametrize("k", [1, 2, 8, 63])
def test_kth_distance(Q, M, k, around):
    points, queries, k = wavy(M), wavy(Q) + 0.01, min(k, M)
    found = around.kth_distance(*tensors(queries, points), k).cpu().numpy()
    np.testing.assert_allclose(found, cKDTree(points).query(queries, [k])[0][:, 0], rtol=1e-15)


@pytest.mark.parametrize("M", [1, 40, 300])
@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_scatter_matrices(M, radius, around):
    points = np.unique(wavy(M), axis=0)  # of points equally far the tree takes one
    queries = points[::7]
    both = tensors(queries, points)
    if around is kernel:
        found = definition.centred(kernel.sums(*both, NEIGHBORS, radius))
    else:
        found = definition.scatter_matrices(*both, NEIGHBORS, radius)
    np.testing.assert_allclose(found.cpu().numpy(), scatter_by_tree(queries, points, radius), atol=1e-12)


@pytest.mark.parametrize("room", [32, 1])
def test_kth_distance_among_many(monkeypatch, room):
    """Whether the points near enough find room, or are searched again."""
    monkeypatch.setattr(kernel, "MIN_POINTS", 10)
    monkeypatch.setattr(kernel, "ROOM", room)
    points, queries = wavy(300), wavy(300)[::37] + 0.01
    found = kernel.kth_distance(*tensors(queries, points), 8).cpu().numpy()
    np.testing.assert_allclose(found, cKDTree(points).query(queries, [8])[0][:, 0], rtol=1e-15)
