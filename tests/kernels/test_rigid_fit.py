"""Motions from sums over matched points: by kernels, on a GPU or in the interpreter, and by definition."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

import triton
import triton.language as tl

from pcreg.geometry.se3 import procrustes, random_rotation
from pcreg.kernels.kabsch import rigid_fit
from pcreg.kernels.triton import rigid_fit as kernel
from tests.kernels.clouds import DEVICE


@triton.jit
def fit_each(sums, T, fitted):
    h = tl.program_id(0)
    s = sums + 16 * h
    p = tl.load(s + 1), tl.load(s + 2), tl.load(s + 3)
    q = tl.load(s + 4), tl.load(s + 5), tl.load(s + 6)
    x = tl.load(s + 7), tl.load(s + 8), tl.load(s + 9)
    y = tl.load(s + 10), tl.load(s + 11), tl.load(s + 12)
    z = tl.load(s + 13), tl.load(s + 14), tl.load(s + 15)
    fit = kernel.rigid_fit(
        tl.load(s), p[0], p[1], p[2], q[0], q[1], q[2], x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]
    )
    r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, exists = fit
    kernel.store_motion(T + 16 * h, r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, exists)
    tl.store(fitted + h, exists.to(tl.int32))


def by_kernel(sums):
    sums = sums.to(DEVICE)
    T = torch.eye(4, dtype=torch.float64, device=DEVICE).repeat(len(sums), 1, 1)
    fitted = torch.zeros(len(sums), dtype=torch.int32, device=DEVICE)
    fit_each[(len(sums),)](sums, T, fitted)
    assert (fitted == 1).all()
    return T.cpu()


def sums_of(p, q, weights):
    weighted = weights[:, None] * p
    both = weighted.sum(0), (weights[:, None] * q).sum(0), (weighted.T @ q).ravel()
    return np.concatenate([[weights.sum()], *both])


@pytest.mark.parametrize("fit", [rigid_fit, by_kernel])
@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 0), (1, 0.01, 1e-4)])
@pytest.mark.parametrize("mirror", [1, -1])
def test_motions_are_those_of_singular_values(fit, count, shape, mirror):
    rng = np.random.default_rng(count)
    wanted, sums = [], []
    for _ in range(20):
        p = rng.normal(size=(count, 3)) * shape
        q = p * [mirror, 1, 1] @ random_rotation(rng).T + 3 * rng.normal(size=3)
        q += 1e-3 * rng.normal(size=q.shape)
        weights = rng.uniform(0.1, 1, count)
        wanted.append(procrustes(p, q, weights))
        sums.append(sums_of(p, q, weights))
    found = fit(torch.from_numpy(np.array(sums)))
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5 if shape[1] < 1 else 1e-9)


def test_points_that_coincide_are_not_turned():
    points = np.ones((5, 3))
    sums = torch.from_numpy(sums_of(points, points, np.ones(5)))[None].to(DEVICE)
    T, fitted = torch.eye(4, dtype=torch.float64, device=DEVICE)[None], sums.new_ones(1, dtype=torch.int32)
    fit_each[(1,)](sums, T, fitted)
    assert fitted.item() == 0
    assert torch.equal(T[0].cpu(), torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("fit", [rigid_fit, by_kernel])
def test_points_on_a_line_come_to_lie_on_each_other(fit):
    p = np.eye(3)[:1].repeat(4, 0) * np.arange(4)[:, None]
    q = p[:, [1, 2, 0]] + [1, 2, 3]
    T = fit(torch.from_numpy(sums_of(p, q, np.ones(4)))[None])[0].numpy()
    np.testing.assert_allclose(p @ T[:3, :3].T + T[:3, 3], q, atol=1e-6)
    np.testing.assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-9)
