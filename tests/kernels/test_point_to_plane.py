"""Point-to-plane ICP: by the kernels, by the definition, and of SciPy's tree."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.kernels import point_to_plane as definition
from pcreg.kernels.point_to_plane import Limits, Outcome
from pcreg.kernels.triton import point_to_plane as kernel
from pcreg.registration.estimation.icp import Surfaces
from tests.kernels.clouds import DEVICE

MOTION = se3(rotation_about([1, 2, 3], 20), np.array([0.1, 0.0, -0.1]))


def iterated(by, surfaces, T, count, min_step=0.0, outcome=Outcome.GOING_ON, taken=0):
    """T (4, 4), the outcome and the number of steps."""
    *clouds, state = on_device(
        surfaces.source, surfaces.target, surfaces.normals, np.append(T, (outcome, taken))
    )
    limits = Limits(0.3, surfaces.radius(T), min_step, 1e8)
    found = by.iterate(*clouds, state, limits, count).cpu().numpy()
    return found[:16].reshape(4, 4), *found[16:].astype(int)


def on_device(*arrays):
    return [torch.from_numpy(array).to(DEVICE) for array in arrays]


def placed(source: np.ndarray, target: np.ndarray, normals: np.ndarray) -> Surfaces:
    """Surfaces as they are given."""
    return Surfaces(source, target, normals, np.eye(4), np.zeros(3))


@pytest.fixture
def room():
    """Three walls that meet, and the same points elsewhere by a few centimetres and degrees."""
    rng = np.random.default_rng(0)
    target, normals = rng.uniform(0, 1, (600, 3)), np.repeat(np.eye(3), 200, 0)
    target[normals == 1] = 0
    source = target + rng.normal(0, 1e-3, target.shape)
    return placed(source[:-10], target, normals), se3(rotation_about([1, 0, 2], 3), np.full(3, 0.02))


@pytest.mark.parametrize(("N", "M"), [(1, 1), (17, 65), (16, 64), (50, 30)])
@pytest.mark.parametrize("max_distance", [0.2, 10.0])
def test_the_normal_equations_are_those_of_icp(N, M, max_distance):
    rng = np.random.default_rng(N)
    source, target, normals = rng.uniform(0, 1, (N, 3)), rng.uniform(0, 1, (M, 3)), rng.normal(size=(M, 3))
    wanted = placed(source, target, normals).normal_equations(MOTION, max_distance)
    for by in definition, kernel:
        tensors = on_device(source, target, normals, MOTION)
        sums = by.normal_equations(*tensors, max_distance).cpu().numpy()
        np.testing.assert_allclose(sums[:6, :6], wanted[0], atol=1e-12)
        np.testing.assert_allclose(sums[:6, 6], wanted[1], atol=1e-12)


@pytest.mark.parametrize("by", [definition, kernel])
@pytest.mark.parametrize("count", [1, 4])
def test_iterations_are_those_of_icp(room, by, count):
    surfaces, T = room
    wanted = surfaces.point_to_plane(T, 0.3, 0.0, count)
    found, outcome, taken = iterated(by, surfaces, T, count)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert (outcome, taken) == (Outcome.GOING_ON, count)


@pytest.mark.parametrize("by", [definition, kernel])
def test_they_end_with_a_short_step_and_stay(room, by):
    surfaces, T = room
    found, outcome, taken = iterated(by, surfaces, T, 20, min_step=1e-5)
    assert outcome == Outcome.CONVERGED
    assert 1 < taken < 10
    np.testing.assert_allclose(found, surfaces.point_to_plane(T, 0.3, 1e-5), atol=1e-12)
    again = iterated(by, surfaces, found, 3, outcome=outcome, taken=taken)
    assert np.array_equal(again[0], found)
    assert again[1:] == (outcome, taken)


@pytest.mark.parametrize("by", [definition, kernel])
@pytest.mark.parametrize("surface", ["plane", "nothing near", "one point"])
def test_a_direction_that_is_left_alone_ends_them_too(room, by, surface):
    surfaces, T = room
    if surface == "plane":
        surfaces = placed(surfaces.source[:200], surfaces.target[:200], surfaces.normals[:200])
    elif surface == "nothing near":
        surfaces = placed(surfaces.source + 9, surfaces.target, surfaces.normals)
    else:
        surfaces = placed(surfaces.source[:1], surfaces.target, surfaces.normals)
    found, outcome, taken = iterated(by, surfaces, T, 3)
    assert (outcome, taken) == (Outcome.UNDETERMINED, 0)
    assert np.array_equal(found, T)
