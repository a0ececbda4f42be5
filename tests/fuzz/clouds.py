"""Pairs of degenerate clouds: a motion with a verdict, or a refusal."""

import random
from pathlib import Path

import numpy as np

from pcreg import register
from pcreg.geometry.se3 import random_rotation, se3, transform
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet


def trial(rng: random.Random, folder: Path) -> str:
    numbers = np.random.default_rng(rng.getrandbits(64))
    source = made(rng, numbers)
    target = source if rng.random() < 0.5 else made(rng, numbers)
    T = se3(random_rotation(numbers), numbers.normal(size=3))
    with np.errstate(all="ignore"):
        target = transform(T, target)
    for _ in range(rng.randrange(3)):
        source = rng.choice(CHANGES)(source, rng, numbers)
    if rng.random() < 0.2:
        target = rng.choice(CHANGES)(target, rng, numbers)
    voxel = rng.choice([None, None, 0.05, 0.2, 1e-9, 1e9])
    refusal = ""
    try:
        found = register(source, target, descriptor="fpfh", voxel=voxel, seed=rng.randrange(5))
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return "refused"
    rotation = found.T_target_source[:3, :3]
    assert np.isfinite(found.T_target_source).all()
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)
    assert np.linalg.det(rotation) > 0
    assert 0 <= found.confidence <= 1
    assert found.reason
    return "answered"


def made(rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    """Points (N, 3) of a shape, few or many."""
    n = rng.choice([0, 1, 2, 3, 4, 10, 100, 1000, 3000])
    return rng.choice(SHAPES)(n, numbers)


def plane(n: int, numbers: np.random.Generator) -> np.ndarray:
    return numbers.uniform(-2, 2, (n, 3)) * [1, 1, 0]


def line(n: int, numbers: np.random.Generator) -> np.ndarray:
    return numbers.uniform(-2, 2, (n, 1)) * [1.0, 2.0, 3.0]


def sphere(n: int, numbers: np.random.Generator) -> np.ndarray:
    points = numbers.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def grid(n: int, _: np.random.Generator) -> np.ndarray:
    side = round(n ** (1 / 3))
    return np.stack(np.meshgrid(*[np.arange(side) * 0.1] * 3), -1).reshape(-1, 3).astype(float)


SHAPES = (
    plane,
    line,
    sphere,
    grid,
    lambda n, _: np.ones((n, 3)),  # one place
    lambda n, numbers: numbers.uniform(-1, 1, (n, 3)),  # noise
    lambda n, numbers: wavy_sheet(n, seed=int(numbers.integers(100)), extent=2.0),
    lambda n, numbers: wavy_sheet(n, seed=int(numbers.integers(100)), extent=2.0),
)


def with_bad_rows(points: np.ndarray, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    points = points.copy()
    points[numbers.random(len(points)) < rng.choice([0.01, 0.5, 1.0])] = rng.choice([np.nan, np.inf, 0.0])
    return points


def repeated(points: np.ndarray, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    return np.repeat(points, rng.choice([2, 3]), axis=0)


def scaled(points: np.ndarray, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    with np.errstate(over="ignore"):  # infinite coordinates are meant
        return points * rng.choice([1e-300, 1e-12, 1e-3, -1.0, 1e3, 1e12, 1e30, 1e200])


def moved_far(points: np.ndarray, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    return points + rng.choice([1e3, 5e5, 1e9, 1e15, 1e300])


def with_strays(points: np.ndarray, rng: random.Random, numbers: np.random.Generator) -> np.ndarray:
    return np.concatenate([points, numbers.normal(size=(3, 3)) * rng.choice([1e2, 1e5, 1e12, 1e300])])


CHANGES = (with_bad_rows, repeated, scaled, moved_far, with_strays)
