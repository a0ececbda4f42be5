"""The equations of point-to-plane ICP: by the kernel, by the definition, and of SciPy's tree."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.kernels.point_to_plane import equations
from pcreg.kernels.triton import point_to_plane as kernel
from pcreg.registration.icp import Surfaces
from tests.kernels.clouds import DEVICE


@pytest.mark.parametrize(("N", "M"), [(1, 1), (17, 65), (16, 64), (50, 30)])
@pytest.mark.parametrize("max_distance", [0.2, 10.0])
def test_the_normal_equations_are_those_of_icp(N, M, max_distance):
    rng = np.random.default_rng(N)
    source, target, normals = rng.uniform(0, 1, (N, 3)), rng.uniform(0, 1, (M, 3)), rng.normal(size=(M, 3))
    T = se3(rotation_about([1, 2, 3], 20), np.array([0.1, 0.0, -0.1]))
    wanted = Surfaces(source, target, normals).normal_equations(T, max_distance)
    tensors = [torch.from_numpy(array).to(DEVICE) for array in (source, target, normals, T)]
    for found in (equations(*tensors, max_distance), kernel.equations(*tensors, max_distance)):
        sums = (found.T @ found).cpu().numpy()
        np.testing.assert_allclose(sums[:6, :6], wanted[0], atol=1e-12)
        np.testing.assert_allclose(sums[:6, 6], wanted[1], atol=1e-12)
