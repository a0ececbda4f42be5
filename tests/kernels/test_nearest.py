"""The nearest point, by the kernel and by its definition, against a tree of SciPy."""

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.nearest import nearest_points
from tests.kernels.clouds import DEVICE


@pytest.mark.parametrize(("Q", "M"), [(1, 1), (17, 63), (16, 64), (33, 65), (100, 1), (0, 5)])
@pytest.mark.parametrize("by_kernel", [False, True])
def test_it_is_that_of_a_tree(Q, M, by_kernel):
    rng = np.random.default_rng(Q + M)
    queries, points = rng.normal(size=(Q, 3)), rng.normal(size=(M, 3))
    both = torch.from_numpy(queries), torch.from_numpy(points)
    if by_kernel:
        from pcreg.kernels.triton.points.nearest import nearest_points as kernel

        distance, row = kernel(*(each.to(DEVICE) for each in both))
    else:
        distance, row = nearest_points(*both)
    tree_distance, tree_row = cKDTree(points).query(queries)
    np.testing.assert_allclose(distance.cpu().numpy(), tree_distance, rtol=1e-15)
    np.testing.assert_array_equal(row.cpu().numpy(), tree_row)


@pytest.mark.parametrize("copies", [2, 70])
def test_of_equally_near_points_it_is_the_first(copies):
    from pcreg.kernels.triton.points.nearest import nearest_points as kernel

    points = torch.ones(copies, 3, dtype=torch.float64, device=DEVICE)
    queries = torch.zeros(3, 3, dtype=torch.float64, device=DEVICE)
    for found in (nearest_points, kernel):
        assert found(queries, points)[1].tolist() == [0, 0, 0]
