"""Containers, pallets and racks, each on the origin."""

import numpy as np

from pcreg.datasets.simulated.outdoor.things import Things
from pcreg.datasets.simulated.solids import box


def container(rng: np.random.Generator) -> Things:
    half, high = rng.choice([3.03, 6.06]), rng.integers(1, 3)
    ribs = np.arange(-half, half, 0.6)
    return Things.of(
        box([-half, -1.18, 0], [half, 1.18, 2.6 * high]),
        box(
            np.c_[ribs, 0 * ribs - 1.22, 0 * ribs],
            np.c_[ribs + 0.25, 0 * ribs + 1.22, 0 * ribs + 2.6 * high],
        ),
    )


def pallets(rng: np.random.Generator) -> Things:
    n = rng.integers(2, 7)
    at = rng.uniform(-1.5, 1.5, (n, 2))
    size = rng.uniform([0.3, 0.3, 0.3], [0.7, 0.7, 2.0], (n, 3))
    return Things.of(box(np.c_[at - size[:, :2], np.full(n, -0.3)], np.c_[at + size[:, :2], size[:, 2]]))


def rack(rng: np.random.Generator) -> Things:
    """Shelving of a warehouse, partly full."""
    half, height = rng.uniform([3, 3], [8, 7])
    x = np.linspace(-half, half, round(half / 1.35) + 1)
    posts = np.array([[at, y, 0] for at in x for y in (-0.5, 0.5)])
    levels = np.arange(0.1, height, 1.6)
    n = rng.integers(5, 25)
    at, level = rng.uniform(-half + 0.6, half - 0.6, n), rng.choice(levels, n)
    size = rng.uniform([0.3, 0.3, 0.4], [0.6, 0.5, 1.3], (n, 3))
    return Things.of(
        box(posts - [0.05, 0.05, 0], posts + np.array([0.05, 0.05, height])),
        box(
            np.c_[0 * levels - half, 0 * levels - 0.5, levels],
            np.c_[0 * levels + half, 0 * levels + 0.5, levels + 0.1],
        ),
        box(
            np.c_[at - size[:, 0], -size[:, 1], level],
            np.c_[at + size[:, 0], size[:, 1], level + size[:, 2]],
        ),
    )
