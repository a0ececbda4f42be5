"""Weighted sums over what a motion brings together: by the kernel and by the definition, beside NumPy."""

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.kernels import agreement as definition
from pcreg.kernels.triton import agreement as kernel
from tests.kernels.clouds import DEVICE

DISTANCE, USUAL = 0.3, 0.1
T = se3(rotation_about([1, 2, 3], 20), np.array([0.1, 0.0, -0.1]))


@pytest.mark.parametrize(("N", "M", "C"), [(1, 1, 1), (17, 129, 33), (8, 128, 32), (50, 30, 96)])
@pytest.mark.parametrize("by", [definition, kernel])
def test_weighted_sums(N, M, C, by):
    rng = np.random.default_rng(N)
    p, q = rng.uniform(0, 1, (N, 3)), rng.uniform(0, 1, (M, 3))
    q[0] = transform(T, p[:1])[0] + 0.1
    f, g = (rng.normal(size=(count, C)).astype(np.float32) for count in (N, M))
    apart, nearest = cKDTree(q).query(transform(T, p))
    weights = np.maximum(1 - (apart / DISTANCE) ** 2, 0) * np.maximum((f * g[nearest]).sum(1) - USUAL, 0)
    one_p, one_q = (np.hstack([np.ones((N, 1)), side]) for side in (p, q[nearest]))
    wanted = [(weights > 0).sum(), *((one_p * weights[:, None]).T @ one_q).ravel()]
    tensors = [torch.from_numpy(rows).to(DEVICE) for rows in (p, q, f, g, T)]
    found = by.weighted_sums(*tensors, DISTANCE, USUAL).cpu().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("by", [definition, kernel])
def test_alignment_takes_like_points_to_each_other(by):
    rng = np.random.default_rng(0)
    p, q = rng.uniform(0, 1, (90, 3)), rng.uniform(0, 1, (20, 3))
    q, f = np.concatenate([q, transform(T, p)]), rng.normal(size=(90, 32)).astype(np.float32)
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    g = np.concatenate([rng.normal(size=(20, 32)).astype(np.float32) / 9, f])
    start = T @ se3(rotation_about([0, 1, 0], 2), np.full(3, 0.01))
    tensors = [torch.from_numpy(rows).to(DEVICE) for rows in (p, q, f, g, start)]
    found = by.align(*tensors, DISTANCE, USUAL, 10, 10).cpu().numpy()
    np.testing.assert_allclose(found, T, atol=1e-9)
    np.testing.assert_array_equal(by.align(*tensors, DISTANCE, USUAL, 91, 10).cpu().numpy(), start)
