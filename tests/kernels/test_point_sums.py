"""Sums over inliers and of a step of ICP: by the kernels, by their definitions and by plain NumPy."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, residuals, se3
from pcreg.kernels.triton.points.nearest import inlier_sums, step_sums
from pcreg.registration.estimation.consensus import MatchedPoints
from pcreg.registration.estimation.icp import MIN_COSINE, Planes, Surface
from tests.kernels.clouds import DEVICE

DISTANCE = 0.6


@pytest.mark.parametrize(("H", "P"), [(0, 5), (1, 1), (3, 127), (2, 128), (5, 300)])
def test_sums_over_inliers(H, P):
    rng = np.random.default_rng(P)
    p, q = rng.uniform(0, 1, (2, P, 3))
    motions = np.empty((H, 4, 4))
    wanted = np.empty((H, 17))
    for row in range(H):
        motions[row] = T = se3(limited_rotation(rng, 40), rng.normal(scale=0.2, size=3))
        distance = residuals(T, p, q)
        inlier = distance < DISTANCE
        one_p, one_q = (np.column_stack([np.ones(inlier.sum()), side[inlier]]) for side in (p, q))
        wanted[row] = [(1 - (distance[inlier] / DISTANCE) ** 2).sum(), *(one_p.T @ one_q).ravel()]
    tensors = [torch.from_numpy(np.ascontiguousarray(rows)).to(DEVICE) for rows in (motions, p.T, q.T)]
    for sums in (MatchedPoints(p, q, DISTANCE).inlier_sums(motions), inlier_sums(*tensors, DISTANCE).cpu()):
        np.testing.assert_allclose(sums, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("N", "M", "distance", "scale"),
    [(1, 1, 9.0, 0.1), (7, 130, 0.3, np.inf), (63, 500, 0.2, 0.05), (9, 40, 1e-6, 0.1)],
)
def test_sums_of_a_step(N, M, distance, scale):
    rng = np.random.default_rng(N)
    sources, target = (rng.uniform(size=size) for size in ((3, N, 3), (M, 3)))
    upright, normals = (rng.normal((0, 0, 3), size=each.shape) for each in (sources, target))
    upright[..., ::2, :] *= -1
    for each in (upright, normals):
        each /= np.linalg.norm(each, axis=-1, keepdims=True)
    T = np.stack([se3(limited_rotation(rng, 10), rng.normal(scale=0.02, size=3)) for _ in range(3)])
    wanted = Planes(Surface(target, normals)).step_sums(Surface(sources, upright), T, (distance, scale))
    tensors = (torch.from_numpy(rows).to(DEVICE) for rows in (sources, upright, target, normals, T))
    found = step_sums(*tensors, distance, scale, MIN_COSINE)[:, :6].cpu().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert distance < 1e-3 or np.abs(wanted).max() > 0
