"""Trees, bushes and hedges. Each stands on the origin, z up, metres; crowns are heaps of leafy balls."""

import numpy as np

from pcreg.datasets.simulated.solids import Material, Solids, balls, boxes, poles, rods


def tree(rng: np.random.Generator) -> Solids:
    """A tree of one of four kinds, 4 to 15 m high."""
    return rng.choice([_broadleaf, _broadleaf, _column, _conifer, _bare])(rng)


def bush(rng: np.random.Generator) -> Solids:
    n = rng.integers(5, 12)
    radius = rng.uniform(0.2, 0.5, n)
    centre = rng.normal(0, 0.35, (n, 3)) * [1, 1, 0.6] + [0, 0, 0.55]
    return balls(*centre.T, radius, radius, radius * 0.8).of(Material.LEAVES)


def hedge(rng: np.random.Generator, length: float) -> Solids:
    """A clipped hedge along x, uneven on its top and sides."""
    height, depth = rng.uniform([0.7, 0.3], [2.2, 0.6])
    ends = np.linspace(-length / 2, length / 2, max(2, int(length / rng.uniform(0.7, 1.5))) + 1)
    n = len(ends) - 1
    front, back = -depth * rng.uniform(0.8, 1, n), depth * rng.uniform(0.8, 1, n)
    tops = height * rng.uniform(0.92, 1, n)
    return boxes(ends[:-1], front, -0.4, ends[1:], back, tops).of(Material.LEAVES)


def _broadleaf(rng: np.random.Generator) -> Solids:
    height = rng.uniform(5, 13)
    stem, wide = height * rng.uniform([0.22, 0.2], [0.4, 0.36])
    middle = np.array([0, 0, (stem + height) / 2])
    crown = _within(rng, rng.integers(28, 50), 0.55) * [wide, wide, (height - stem) / 2] + middle
    radius = wide * rng.uniform(0.14, 0.34, len(crown))
    trunk = _trunk(rng, height * rng.uniform(0.012, 0.025), stem)
    boughs = crown[: rng.integers(5, 9)]
    leaves = balls(*crown.T, *(radius * rng.uniform(0.6, 1, (len(crown), 3)).T))
    return Solids.join(trunk, rods(0.006 * height, 0, 0, stem * 0.9, *boughs.T), leaves.of(Material.LEAVES))


def _column(rng: np.random.Generator) -> Solids:
    height, wide = rng.uniform([6, 0.7], [14, 1.6])
    n = rng.integers(18, 34)
    z = np.linspace(height * 0.15, height * 0.97, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    out = wide * 0.5 * np.sqrt(1 - (z / height) ** 2)
    radius = wide * rng.uniform(0.35, 0.6, n)
    leaves = balls(out * np.cos(angle), out * np.sin(angle), z, radius, radius, 1.6 * radius)
    return Solids.join(_trunk(rng, 0.014 * height, height * 0.6), leaves.of(Material.LEAVES))


def _conifer(rng: np.random.Generator) -> Solids:
    height = rng.uniform(5, 15)
    wide = height * rng.uniform(0.15, 0.25)
    n = rng.integers(30, 55)
    z = rng.uniform(0.1, 1, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    out = wide * (1 - z) * rng.uniform(0.3, 0.8, n)
    radius = 0.12 * wide + 0.4 * wide * (1 - z)
    leaves = balls(out * np.cos(angle), out * np.sin(angle), z * height, radius, radius, 0.35 * radius)
    return Solids.join(poles(0.012 * height, 0, 0, -0.5, height), leaves.of(Material.LEAVES))


def _bare(rng: np.random.Generator) -> Solids:
    """A tree in winter: boughs and twigs alone."""
    height = rng.uniform(4, 10)
    stem, wide = height * rng.uniform([0.25, 0.2], [0.4, 0.35])
    middle = np.array([0, 0, (stem + height) / 2])
    boughs = _within(rng, 10, 0.5) * [wide, wide, (height - stem) / 2] + middle
    twigs = boughs[rng.integers(0, 10, 30)] + rng.normal(0, 0.1 * height, (30, 3))
    return Solids.join(
        _trunk(rng, 0.016 * height, stem),
        rods(0.008 * height, 0, 0, stem * 0.9, *boughs.T),
        rods(0.004 * height, *boughs[rng.integers(0, 10, 30)].T, *twigs.T),
    )


def _trunk(rng: np.random.Generator, radius: float, height: float):
    lean = rng.normal(0, 0.03, 2) * height
    return rods(radius, 0, 0, -0.5, *lean, height)


def _within(rng: np.random.Generator, n: int, inner: float) -> np.ndarray:
    """Places (n, 3) in the outer part of a unit ball."""
    direction = rng.standard_normal((n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.uniform(inner, 1, (n, 1)) ** 0.5 * 0.85
