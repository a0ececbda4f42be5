"""What places hide of a surface, by the kernels and by the definition, beside NumPy; and their angles."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

import triton
import triton.language as tl

from pcreg.geometry.viewpoint import FACE_CELLS, MIN_INCIDENCE_COSINE, WIDTH, View
from pcreg.kernels import occlusion as definition
from pcreg.kernels.range_image import OcclusionLimits
from pcreg.kernels.triton import occlusion as kernel
from pcreg.kernels.triton.angles import arctan, arctan2
from tests.kernels.clouds import DEVICE


@pytest.mark.parametrize("by", [definition, kernel])
@pytest.mark.parametrize(("P", "N"), [(1, 1), (3, 127), (5, 128), (7, 700)])
def test_points_are_hidden_and_seen_edge_on(by, P, N):
    rng = np.random.default_rng(N)
    points, normals = rng.uniform(-3, 3, (2, N, 3))
    points[: N // 2, 2] = 0  # a floor that other points stand behind
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    places = np.concatenate([points[:1], rng.uniform(-6, 6, (P - 1, 3))])  # one is a point
    hidden, edge_on = View(points, normals, 0.3).hidden(places)
    rows = [torch.from_numpy(each).to(DEVICE) for each in (places, points, normals)]
    found = by.hidden_and_edge_on(*rows, OcclusionLimits(FACE_CELLS, 0.3, WIDTH, MIN_INCIDENCE_COSINE))
    assert found.dtype == torch.int32
    np.testing.assert_array_equal(found.cpu().numpy() / N, np.stack([hidden, edge_on], 1))
    assert N < 700 or hidden.max() > 0.03


@triton.jit
def _angles(y, x, out, N: tl.constexpr):
    n = tl.arange(0, N)
    ratio = tl.load(y + n)
    tl.store(out + n, arctan(ratio))
    tl.store(out + N + n, arctan2(ratio, tl.load(x + n)))


def test_angles_are_exact_but_for_the_last_bits():
    rng = np.random.default_rng(0)
    y, x = np.concatenate([[0, 0, 1, -1, 1, -1], rng.uniform(-1, 1, 506)]), rng.normal(size=512)
    x[:6] = 0, -1, 0, 0, -1, 1
    out = torch.empty(2, 512, dtype=torch.float64, device=DEVICE)
    _angles[(1,)](*(torch.from_numpy(each).to(DEVICE) for each in (y, x)), out, 512)
    np.testing.assert_allclose(out.cpu().numpy(), [np.arctan(y), np.arctan2(y, x)], rtol=0, atol=1e-15)
