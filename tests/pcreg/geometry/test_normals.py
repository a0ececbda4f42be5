"""Scatter matrices and normals, and surfaces beside noise."""

import numpy as np
import pytest

from pcreg import register
from pcreg.geometry.normals import fills_space, normals_of, planar_fraction, scatter_matrices
from pcreg.registration.clouds.preprocess import downsample_and_filter
from tests.pcreg.scenes import wavy_sheet


def box(rng: np.random.Generator, count: int, edges: tuple[float, float, float]) -> np.ndarray:
    return rng.uniform(-0.5, 0.5, (count, 3)) * edges


def ball(rng: np.random.Generator, count: int, radius: float = 2.0) -> np.ndarray:
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return radius * directions * rng.uniform(0, 1, (count, 1)) ** (1 / 3)


# Kinds of noise with a pair of clouds that overlap and matches would register
NOISE = {"cube": (2000, 17, lambda rng, n: box(rng, n, (4, 4, 4))), "ball": (10_000, 4, ball)}


def test_variation_of_a_plane_a_line_and_a_cross():
    """A plane has no third direction; the axes of a cross spread equally in all three."""
    x, y = np.mgrid[:5, :5].reshape(2, -1)
    plane = np.stack([x, y, 0 * x], 1).astype(float)
    assert normals_of(plane, 10.0)[1] == pytest.approx(0, abs=1e-12)
    cross = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
    assert normals_of(cross, 2.0)[1][0] == pytest.approx(1 / 3)
    assert normals_of(np.zeros((1, 3)), 2.0)[1] == 0


@pytest.mark.parametrize("kind", NOISE)
def test_noise_has_no_surface(kind):
    _, _, draw = NOISE[kind]
    noise = draw(np.random.default_rng(3), 40_000)
    noise = noise[downsample_and_filter(noise, 0.15, np.zeros(3))]
    variation = normals_of(noise, 0.45)[1]
    assert planar_fraction(variation) < 0.01
    assert fills_space(noise, variation, 0.45)


def test_sheets_rooms_and_noisy_walls_have(room):
    rng = np.random.default_rng(0)
    wall, noisy = (
        rng.uniform(0, 6, (20_000, 3)) * [1, 1, 0] + rng.normal(0, noise, (20_000, 3))
        for noise in (0.03, 0.06)
    )  # 0.3 and 0.6 of a voxel
    leaves = np.concatenate([wall[:10_000], 6 + box(rng, 20_000, (3, 3, 3))])
    for points in (room.source, wall, noisy, leaves, wavy_sheet(20_000, extent=6.0)):
        surface = points[downsample_and_filter(points, 0.1, np.zeros(3))]
        variation = normals_of(surface, 0.3)[1]
        assert not fills_space(surface, variation, 0.3)
        assert fills_space(surface, variation, 0.3, strict=True) == (points is noisy)


@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_not_registered(kind):
    count, seed, draw = NOISE[kind]
    rng = np.random.default_rng([seed, count])
    found = register(draw(rng, count), draw(rng, count))
    assert not found.registered
    assert found.confidence <= 0.5


@pytest.mark.parametrize("at_once", [1, 7, 2048])
def test_scatter_matrices_are_those_of_a_loop(monkeypatch, at_once):
    """Points have more than thirty neighbours, a few, or only themselves."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 0.1, (90, 3)), rng.normal(0, 1, (60, 3)), [[50.0, 0, 0]]]) + 100
    monkeypatch.setattr("pcreg.geometry.normals.QUERIES_AT_ONCE", at_once)
    found, counts = scatter_matrices(points[::2], points, 0.3), []
    for query, matrix in zip(points[::2], found, strict=True):
        distance = np.linalg.norm(points - query, axis=1)
        around = points[np.argsort(distance)[:30]]
        around = around[np.sort(distance)[:30] < 0.3]
        centred = around - around.mean(0)
        np.testing.assert_allclose(matrix, centred.T @ centred, atol=1e-12)
        counts.append(len(around))
    assert {1, 30} <= set(counts)
    assert any(1 < count < 30 for count in counts)
