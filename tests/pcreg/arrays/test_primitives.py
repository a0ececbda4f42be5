"""Primitives of arrays: NumPy and SciPy define them; tensors and Triton's kernels give the same."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pcreg.arrays import Index, like, scatter_min, to_device, to_host
from tests.pcreg.devices import DEVICES, TORCH


def wavy(M):
    """Points (M, 3) on a surface, some of them twice."""
    rng = np.random.default_rng(M)
    plane = rng.uniform(0, 1, (M, 2))
    points = np.column_stack([plane, 0.1 * np.sin(5 * plane[:, 0])])
    points[M // 2 : M // 2 + 3] = points[0]
    return points


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_nearest_points(device, few):
    points, queries = wavy(300), wavy(70) + 0.01
    index = Index(to_device(points, device), few=few)
    for k, max_distance in ((1, np.inf), (1, 0.03), (5, np.inf), (5, 0.1)):
        found = index.query(to_device(queries, device), k, max_distance)
        expected = cKDTree(points).query(queries, k, distance_upper_bound=max_distance)
        np.testing.assert_allclose(to_host(found[0]), expected[0], rtol=1e-14)
        kth = to_host(index.kth_distance(to_device(queries, device), k, max_distance))
        np.testing.assert_allclose(kth, expected[0].reshape(70, -1)[:, -1], rtol=1e-14)
        rows, near = to_host(found[1]), np.isfinite(expected[0])
        assert (rows[~near] == 300).all()
        distance = np.linalg.norm(points[rows[near]] - queries[near.reshape(70, -1).nonzero()[0]], axis=1)
        np.testing.assert_allclose(distance, expected[0][near], rtol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_least_value_of_each_index(device):
    values, index = np.array([[3.0, 1.0], [2.0, 5.0]]), np.array([[0, 3], [0, 1]])
    values = to_device(values, device)
    assert to_host(scatter_min(values, like(index, values), 5)).tolist() == [2, 5, np.inf, 1, np.inf]


def kernels():
    pytest.importorskip("triton", reason="no triton for this platform")
    from pcreg.kernels.triton.points import k_nearest, nearest

    return nearest, k_nearest


def tensors(*arrays):
    return [to_device(array, TORCH) for array in arrays]


@pytest.mark.parametrize(("Q", "M"), [(1, 1), (17, 63), (33, 200)])
@pytest.mark.parametrize(("k", "radius"), [(1, 0.05), (1, np.inf), (8, 0.5), (63, np.inf)])
def test_kernels_find_the_points_of_a_tree(Q, M, k, radius):
    nearest, k_nearest = kernels()
    points, queries = wavy(M), wavy(Q) + 0.01
    both = tensors(queries, points)
    found = [to_host(each) for each in k_nearest.k_nearest(*both, k, radius)]
    expected, _ = cKDTree(points).query(queries, range(1, k + 1), distance_upper_bound=radius)
    np.testing.assert_allclose(found[0], expected, rtol=1e-14)
    near = np.isfinite(expected)
    assert (found[1][~near] == M).all()
    own = np.linalg.norm(points[found[1][near]] - queries[near.nonzero()[0]], axis=1)
    np.testing.assert_allclose(own, expected[near], rtol=1e-14)
    assert all(len(set(row)) == len(row) for row in (row[row < M] for row in found[1]))
    kth = to_host(k_nearest.kth_distance(*both, k, radius))
    np.testing.assert_allclose(kth, expected[:, -1], rtol=1e-14)
    if k == 1:
        distance, row = (to_host(each) for each in nearest.nearest_points(*both, radius))
        np.testing.assert_array_equal(row, found[1][:, 0])
        np.testing.assert_allclose(distance, expected[:, 0], rtol=1e-14)


def test_of_equally_far_points_the_first_are_found():
    nearest, k_nearest = kernels()
    points, queries = np.ones((70, 3)), np.zeros((3, 3))
    both = tensors(queries, points)
    assert nearest.nearest_points(*both, np.inf)[1].tolist() == [0, 0, 0]
    assert k_nearest.k_nearest(*both, 2, np.inf)[1].tolist() == [[0, 1]] * 3


@pytest.mark.parametrize("room", [32, 1])
def test_few_queries_among_many_points(monkeypatch, room):
    """The points within reach fit into the buffer, or the search is repeated."""
    _, k_nearest = kernels()
    monkeypatch.setattr(k_nearest, "MIN_POINTS", 10)
    monkeypatch.setattr(k_nearest, "ROOM", room)
    points, queries = wavy(300), wavy(300)[::37] + 0.01
    found = to_host(k_nearest.k_nearest(*tensors(queries, points), 8, np.inf)[0])
    np.testing.assert_allclose(found, cKDTree(points).query(queries, 8)[0], rtol=1e-14)
