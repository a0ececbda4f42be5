"""Signed distances to depth images, by the kernel and by its definition."""

import math

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, se3
from pcreg.kernels.signed_distance import DepthImages, distance_sums
from pcreg.kernels.triton.signed_distance import distance_sums as kernel
from tests.kernels.clouds import DEVICE

H, W, FOCAL = 12, 16, 15.0  # pixels
CENTRE = (W - 1) / 2, (H - 1) / 2
TRUNCATION = 0.3


@pytest.mark.parametrize(("B", "K", "M"), [(1, 1, 1), (2, 1, 127), (1, 5, 128), (3, 4, 401), (2, 3, 0)])
def test_kernel_and_definition_agree(B, K, M):
    rng = np.random.default_rng(M)
    z = 2 + 0.3 * rng.normal(size=(B * K, H, 1)).cumsum(1) * rng.uniform(0, 0.3, (B * K, H, W))
    z[rng.random(z.shape) < 0.1] = 0  # missing
    poses = [se3(limited_rotation(rng, 40), rng.normal(scale=0.3, size=3)) for _ in range(B * K)]
    batch, points = np.sort(rng.integers(0, B, M)), rng.uniform((-1, -1, -0.5), (1, 1, 3), (M, 3))
    total, weight = both_are_alike(z, np.stack(poses).reshape(B, K, 4, 4), batch, points)
    if M > 100:
        assert len(weight.unique()) > min(K, 2)
        assert (total.abs() < TRUNCATION * weight).float().mean() > 0.05  # some are not truncated


def test_pixels_at_the_border():
    """Images end half a pixel beyond the middle of the last pixel."""
    places = [-0.6, -0.4, 0.0, 0.5, W - 1.6, W - 1.0, W - 0.6, W - 0.4]
    points = np.array([[(u - CENTRE[0]) * 2 / FOCAL, 0.01, 2.0] for u in places])
    _, weight = both_are_alike(np.full((1, H, W), 2.1), np.eye(4)[None, None], np.zeros(8, int), points)
    assert weight.tolist() == [0, 1, 1, 1, 1, 1, 1, 0]


def test_known_distances():
    """Points on, before and far before the surface, shortly and far behind it, and in the camera."""
    depths = [2.0, 1.9, 1.0, 2.2, 2.4, 0.0]
    points = np.array([[z / 100, z / 50, z] for z in depths])
    total, weight = both_are_alike(np.full((2, H, W), 2.0), *twice(points))
    assert weight.tolist() == [2, 2, 2, 2, 0, 0]
    torch.testing.assert_close(total, torch.tensor([0, 0.2, 0.6, -0.4, 0, 0]), atol=1e-5, rtol=0)


def test_surfaces_are_not_joined_at_a_jump():
    """A wall is 1 m away left of the middle, 3 m right of it; no surface is interpolated in between."""
    z = np.ones((2, H, W))
    z[:, :, W // 2 :] = 3
    between = np.array([[0.3 / FOCAL * d, 0.02, d] for d in (1.0, 3.0)])
    total, weight = both_are_alike(z, *twice(between))
    assert weight.tolist() == [2, 2]
    torch.testing.assert_close(total, torch.tensor([2 * TRUNCATION, 0]), atol=1e-4, rtol=0)


def twice(points):
    """Two images from the same place, and points of one fragment."""
    return np.eye(4)[None, None].repeat(2, 1), np.zeros(len(points), int), points


def both_are_alike(z, T_first_camera, batch, points):
    """Compare the kernel with the definition on the CPU; return the definition's sums and counts."""
    inverse = torch.from_numpy(np.divide(1, z, out=np.zeros_like(z), where=z > 0)).float()
    images = DepthImages(inverse, FOCAL, CENTRE, 0.05)
    poses, points = torch.from_numpy(T_first_camera).float(), torch.from_numpy(points).float()
    batch = torch.from_numpy(batch)
    wanted = distance_sums(images, poses, batch, points, TRUNCATION)
    tensors = (each.to(DEVICE) for each in (poses, batch, points))
    total, weight = kernel((inverse.to(DEVICE), *images[1:]), *tensors, TRUNCATION, 0.1)
    # Rounding may decide next to a threshold.
    same = weight.cpu() == wanted[1]
    error = (total.cpu() - wanted[0]).abs()[same]
    assert same.sum() >= math.floor(0.99 * len(same))
    assert (error < 1e-5).sum() >= math.floor(0.99 * len(error))
    return wanted
