import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, se3, transform
from pcreg.registration.judge.overlap import Overlap

T = se3(rotation_about([1, 2, 3], 70), np.array([3.0, -1.0, 2.0]))
UP = np.array([0.0, 0.0, 1.0])


def floor(width: float, height: float = 0.0) -> np.ndarray:
    """A point per 10 cm of a floor 2 m long."""
    x, y = np.meshgrid(np.arange(0.05, width, 0.1), np.arange(0.05, 2, 0.1))
    return np.stack([x.ravel(), y.ravel(), np.full(x.size, height)], 1)


def on_floor(source: np.ndarray, target: np.ndarray, distance: float = 0.1) -> Overlap:
    """Overlap of a source with the floor; the source is given in its own frame."""
    return Overlap.of(transform(inverse(T), source), target, np.tile(UP, (len(target), 1)), T, distance)


def test_what_lies_near_the_other_touches():
    source, target = floor(1.0, 0.03), floor(2.0)
    found = on_floor(source, target)
    np.testing.assert_allclose(found.moved, source, atol=1e-12)
    assert found.source.touching.all()
    np.testing.assert_array_equal(found.target.touching, target[:, 0] < 1.0 + 0.05)
    np.testing.assert_allclose(found.points, source, atol=1e-12)
    np.testing.assert_array_equal(found.normals, np.tile(UP, (len(source), 1)))
    np.testing.assert_allclose(found.offsets, -0.03)


def test_rows_of_what_touches_belong_together():
    source = np.concatenate([floor(2.0, 0.5), floor(2.0, 0.02)[::-1]])
    target = floor(1.0)
    normals = np.random.default_rng(0).normal(size=target.shape)
    found = Overlap.of(source, target, normals, np.eye(4), 0.1)
    np.testing.assert_array_equal(found.source.touching, (source[:, 2] < 0.1) & (source[:, 0] < 1.05))
    np.testing.assert_array_equal(found.points, source[found.source.touching])
    below = {(round(x, 2), round(y, 2)): n for (x, y, _), n in zip(target, normals, strict=True)}
    inside = found.points[:, 0] < 1.0
    wanted = np.array([below[round(x, 2), round(y, 2)] for x, y, _ in found.points[inside]])
    np.testing.assert_array_equal(found.normals[inside], wanted)
    np.testing.assert_allclose(found.offsets[inside], -0.02 * wanted[:, 2])


@pytest.mark.parametrize("height", [0.1001, 7.0])
def test_nothing_touches_from_the_distance_on(height):
    found = on_floor(floor(1.0, height), floor(2.0))
    assert not found.source.touching.any()
    assert not found.target.touching.any()
    assert (found.points.shape, found.normals.shape, found.offsets.shape) == ((0, 3), (0, 3), (0,))
