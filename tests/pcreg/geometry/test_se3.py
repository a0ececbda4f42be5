import numpy as np
import pytest

from pcreg.geometry.se3 import (
    enlargement,
    limited_rotation,
    procrustes,
    random_rotation,
    residuals,
    rotation_about,
    rotation_error,
    scale_of,
    se3,
    transform,
    turns,
    umeyama,
)


def motion(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return se3(random_rotation(rng), rng.normal(size=3))


def test_random_rotations_are_proper_and_spread_evenly():
    rng = np.random.default_rng(0)
    rotations = np.array([random_rotation(rng) for _ in range(4000)])
    np.testing.assert_allclose(rotations @ rotations.transpose(0, 2, 1), [np.eye(3)] * 4000, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(rotations), 1)
    angles = np.arccos(np.clip((np.trace(rotations, axis1=1, axis2=2) - 1) / 2, -1, 1))
    limited = [rotation_error(se3(limited_rotation(rng, 20), np.zeros(3)), np.eye(4)) for _ in range(99)]
    assert 18 < max(limited) < 20
    # Uniform rotations have angles of density (1 - cos a) / pi, whose mean is pi / 2 + 2 / pi.
    assert angles.mean() == pytest.approx(np.pi / 2 + 2 / np.pi, abs=0.04)


def test_transform_is_rotation_then_translation():
    T = se3(rotation_about((0, 0, 1), 90), np.array([10.0, 0, 0]))
    np.testing.assert_allclose(transform(T, np.array([[1.0, 0, 5]])), [[10, 1, 5]], atol=1e-15)
    points = np.random.default_rng(0).normal((5, 0, 0), (1, 2, 3), (50, 3))
    angles = sorted(rotation_error(turn, np.eye(4)) for turn in turns(points))
    np.testing.assert_allclose(angles, [90] * 6 + [180] * 3)
    np.testing.assert_allclose(
        [transform(turn, points).mean(0) for turn in turns(points)], [points.mean(0)] * 9
    )


@pytest.mark.parametrize("degrees", [0.0, 1e-6, 0.5, 90.0, 179.9])
def test_rotation_error_is_the_angle_between(degrees):
    T = motion()
    turned = T @ se3(rotation_about((1, -2, 3), degrees), np.zeros(3))
    assert rotation_error(turned, T) == pytest.approx(degrees, abs=2e-6)


def test_procrustes_never_reflects():
    source = np.random.default_rng(3).normal(size=(20, 3))
    T = procrustes(source, source * [1, 1, -1])
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1)


@pytest.mark.parametrize("scale", [0.01, 1.0, 40.0])
def test_a_known_similarity_is_found(scale):
    rng = np.random.default_rng(0)
    T = se3(random_rotation(rng), np.array([3.0, -2.0, 500.0])) @ enlargement(scale)
    source = rng.normal((100, 0, 0), size=(7, 3))
    np.testing.assert_allclose(umeyama(source, transform(T, source)), T, atol=1e-9 * scale)
    assert scale_of(T) == pytest.approx(scale)


def test_the_fit_has_the_least_squared_error():
    rng = np.random.default_rng(1)
    source = rng.standard_normal((50, 3))
    target = 2 * source @ random_rotation(rng).T + 0.1 * rng.standard_normal((50, 3))
    T = umeyama(source, target)
    least = (residuals(T, source, target) ** 2).sum()
    for change in (enlargement(1.001), enlargement(0.999), se3(random_rotation(rng), np.zeros(3))):
        assert (residuals(T @ change, source, target) ** 2).sum() > least
