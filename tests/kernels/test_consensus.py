"""Sums over the inliers of motions: by the kernel and by the definition, beside NumPy."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, procrustes, residuals, se3, transform
from pcreg.kernels.consensus import fit_samples, inlier_sums, refit
from pcreg.kernels.triton import consensus as kernel
from pcreg.registration.estimation.msac import MatchedPoints
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


@pytest.mark.parametrize("count", [1, 12])
def test_motions_are_fitted_to_their_inliers_while_scores_grow(count):
    rng = np.random.default_rng(0)
    T = se3(limited_rotation(rng, 180), rng.normal(size=3))
    p = rng.uniform(0, 2, (300, 3))
    q = np.concatenate(
        [transform(T, p[:150]) + rng.normal(scale=0.02, size=(150, 3)), rng.uniform(0, 2, (150, 3))]
    )
    starts = [T @ se3(limited_rotation(rng, 8), rng.normal(scale=0.05, size=3)) for _ in range(6)]
    starts = np.stack([*starts, se3(np.eye(3), np.full(3, 99.0))])  # the last brings nothing together
    wanted = MatchedPoints(p, q, 0.2).refit(starts)
    tensors = [torch.from_numpy(np.ascontiguousarray(rows)).to(DEVICE) for rows in (starts, p.T, q.T)]
    for by in (refit, kernel.refit):
        found, growing = by(*tensors, 0.2, count)
        assert growing.tolist()[-1] is False
        if count == 1:
            assert growing[:-1].all()
        else:
            assert not growing.any()
            np.testing.assert_allclose(found.cpu().numpy(), wanted, atol=1e-9)


@pytest.mark.parametrize(("S", "n"), [(1, 3), (33, 3), (100, 4)])
def test_samples_are_fitted(S, n):
    rng = np.random.default_rng(S)
    p = rng.uniform(0, 2, (60, 3))
    q = transform(se3(limited_rotation(rng, 180), rng.normal(size=3)), p) + rng.normal(
        scale=0.05, size=p.shape
    )
    samples = np.stack([rng.choice(60, n, replace=False) for _ in range(S)])
    wanted = procrustes(p[samples], q[samples])
    distances = np.stack([residuals(T, p[rows], q[rows]) for T, rows in zip(wanted, samples, strict=True)])
    tensors = [torch.from_numpy(np.ascontiguousarray(rows)).to(DEVICE) for rows in (p.T, q.T, samples)]
    for by in (fit_samples, kernel.fit_samples):
        motions, near = (each.cpu().numpy() for each in by(*tensors, 0.06))
        np.testing.assert_array_equal(near, (distances < 0.06).all(1))
        np.testing.assert_allclose(motions[near], wanted[near], atol=1e-7)
