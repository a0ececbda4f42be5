"""Sums over the inliers of motions: by the kernel and by the definition, beside NumPy."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, residuals, se3
from pcreg.kernels.consensus import inlier_sums
from pcreg.kernels.triton import consensus as kernel
from tests.kernels.clouds import DEVICE

DISTANCE = 0.6


@pytest.mark.parametrize(("H", "P"), [(1, 1), (3, 511), (2, 512), (5, 1030)])
def test_sums_over_inliers(H, P):
    rng = np.random.default_rng(P)
    p, q = rng.uniform(0, 1, (2, P, 3))
    motions = np.stack([se3(limited_rotation(rng, 40), rng.normal(scale=0.2, size=3)) for _ in range(H)])
    wanted = []
    for T in motions:
        distance = residuals(T, p, q)
        inlier = distance < DISTANCE
        score = (1 - (distance[inlier] / DISTANCE) ** 2).sum()
        products = p[inlier].T @ q[inlier]
        wanted.append([score, inlier.sum(), *p[inlier].sum(0), *q[inlier].sum(0), *products.ravel()])
    tensors = [torch.from_numpy(np.ascontiguousarray(rows)).to(DEVICE) for rows in (motions, p.T, q.T)]
    for sums in (inlier_sums, kernel.inlier_sums):
        np.testing.assert_allclose(sums(*tensors, DISTANCE).cpu().numpy(), wanted, rtol=1e-9, atol=1e-9)
    assert inlier_sums(tensors[0][:0], *tensors[1:], DISTANCE).shape == (0, 17)
