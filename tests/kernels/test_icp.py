"""The sums of a step of ICP: the kernel beside the definition."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, se3
from pcreg.kernels.triton.points.sums import step_sums
from pcreg.registration.estimation.icp import Planes
from tests.kernels.clouds import DEVICE


@pytest.mark.parametrize(("N", "M", "distance"), [(1, 1, 9.0), (7, 130, 0.3), (63, 500, 0.2), (9, 40, 1e-6)])
def test_sums_of_a_step(N, M, distance):
    rng = np.random.default_rng(N)
    source, target, normals = rng.uniform(size=(N, 3)), rng.uniform(size=(M, 3)), rng.normal(size=(M, 3))
    T = se3(limited_rotation(rng, 10), rng.normal(scale=0.02, size=3))
    wanted = Planes(target, normals).step_sums(source, T, distance)
    tensors = (torch.from_numpy(rows).to(DEVICE) for rows in (source, target, normals, T))
    found = step_sums(*tensors, distance)[:6].cpu().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert distance < 1e-3 or np.abs(wanted).max() > 0
