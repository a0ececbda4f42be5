"""Things beside and over roads and in yards: poles, signs, benches, containers, fences, rails, bridges.

Each stands on the origin, along x, with its front to -y.
"""

import numpy as np

from pcreg.datasets.simulated.outdoor.buildings import spread
from pcreg.datasets.simulated.solids import Material, Solids, balls, boxes, cones, poles, rods


def lamp(rng: np.random.Generator) -> Solids:
    height, arm = rng.uniform([4, 0.5], [10, 2.5])
    radius = rng.uniform(0.05, 0.11)
    head = [
        boxes(-0.12, -arm - 0.5, height - 0.1, 0.12, -arm + 0.1, height + 0.06),
        rods(0.05, 0, 0, height - 0.15, 0, -arm, height),
    ]
    if rng.random() < 0.3:
        head = [balls(0, 0, height, 0.25, 0.25, 0.25)]
    return Solids.join(poles(radius, 0, 0, -0.5, height), poles(radius * 1.8, 0, 0, -0.5, 0.9), *head)


def sign(rng: np.random.Generator) -> Solids:
    height, half = rng.uniform([2.0, 0.2], [3.2, 0.45])
    if rng.random() < 0.5:
        board = boxes(-half, -0.06, height - 2 * half, half, -0.03, height)
    else:
        board = rods(half, 0, -0.07, height - half, 0, -0.04, height - half)
    return Solids.join(poles(0.035, 0, 0, -0.5, height), board)


def traffic_light(rng: np.random.Generator) -> Solids:
    height, arm = rng.uniform([3.0, 0.3], [6.0, 5.0])
    return Solids.join(
        poles(0.08, 0, 0, -0.5, height),
        rods(0.05, 0, 0, height, 0, -arm, height),
        boxes(-0.17, -0.35, 2.2, 0.17, -0.1, 3.2),
        boxes(-0.2, -arm - 0.2, height - 0.9, 0.2, -arm + 0.2, height + 0.1),
    )


def utility_pole(rng: np.random.Generator) -> Solids:
    height = rng.uniform(6, 10)
    return Solids.join(
        poles(0.14, 0, 0, -0.5, height),
        boxes(-0.06, -1, height - 0.6, 0.06, 1, height - 0.5),
        poles(0.2, 0.3, 0, height - 2, height - 1.2),
    )


def bollard(rng: np.random.Generator) -> Solids:
    radius, height = rng.uniform([0.06, 0.6], [0.15, 1.1])
    return Solids.join(poles(radius, 0, 0, -0.5, height), balls(0, 0, height, radius, radius, radius))


def litter_bin(rng: np.random.Generator) -> Solids:
    if rng.random() < 0.5:
        return poles(rng.uniform(0.2, 0.35), 0, 0, -0.3, rng.uniform(0.8, 1.1))
    return Solids.join(boxes(-0.6, -0.5, 0.1, 0.6, 0.5, 1.2), boxes(-0.65, -0.55, 1.2, 0.65, 0.55, 1.32))


def bench(rng: np.random.Generator) -> Solids:
    half = rng.uniform(0.6, 1.1)
    return Solids.join(
        boxes(-half, -0.5, 0.4, half, -0.05, 0.46),
        boxes(-half, -0.05, 0.5, half, 0.02, 0.9),
        boxes(
            [(-half + 0.1, -0.45, -0.2, -half + 0.2, 0, 0.42), (half - 0.2, -0.45, -0.2, half - 0.1, 0, 0.42)]
        ),
    )


def bus_stop(rng: np.random.Generator) -> Solids:
    half, deep = rng.uniform([1.5, 1.2], [2.5, 1.8])
    posts = [(0.05, x, y, -0.3, x, y, 2.5) for x in (-half, half) for y in (-deep / 2, deep / 2)]
    return Solids.join(
        rods(posts),
        boxes(-half - 0.2, -deep / 2 - 0.2, 2.45, half + 0.2, deep / 2 + 0.2, 2.6),
        boxes(-half + 0.4, deep / 2 - 0.5, 0.4, half - 0.4, deep / 2 - 0.1, 0.47),
        boxes(-half, deep / 2, 0.2, half, deep / 2 + 0.02, 2.3).of(Material.GLASS),
    )


def kiosk(rng: np.random.Generator) -> Solids:
    half, deep, height = rng.uniform([0.5, 0.4, 1.2], [2.0, 1.5, 3.0])
    return Solids.join(
        boxes(-half, -deep, -0.3, half, deep, height),
        boxes(-half - 0.15, -deep - 0.2, height, half + 0.15, deep + 0.2, height + 0.15),
    )


def cabinet(rng: np.random.Generator) -> Solids:
    half, deep, height = rng.uniform([0.3, 0.15, 0.8], [0.9, 0.25, 1.5])
    return boxes(-half, -deep, -0.3, half, deep, height)


def advertising_column(rng: np.random.Generator) -> Solids:
    radius, height = rng.uniform([0.5, 2.5], [0.8, 3.6])
    roof = cones(radius + 0.1, 0, 0, height, 0, 0, height + 0.5)
    return Solids.join(poles(radius, 0, 0, -0.3, height), roof)


def container(rng: np.random.Generator) -> Solids:
    half, high = rng.choice([3.03, 6.06]), rng.integers(1, 3)
    ribs = np.arange(-half, half, 0.6)
    return Solids.join(
        boxes(-half, -1.18, 0, half, 1.18, 2.6 * high),
        boxes(ribs, -1.22, 0, ribs + 0.25, 1.22, 2.6 * high),
    )


def pallets(rng: np.random.Generator) -> Solids:
    n = rng.integers(2, 7)
    at = rng.uniform(-1.5, 1.5, (n, 2))
    size = rng.uniform([0.3, 0.3, 0.3], [0.7, 0.7, 2.0], (n, 3))
    return boxes(*(at - size[:, :2]).T, -0.3, *(at + size[:, :2]).T, size[:, 2])


def rack(rng: np.random.Generator) -> Solids:
    """Shelving of a warehouse, partly full."""
    half, height = rng.uniform([3, 3], [8, 7])
    x = spread(2 * half, 2.7)
    posts = [(at - 0.05, y - 0.05, 0, at + 0.05, y + 0.05, height) for at in x for y in (-0.5, 0.5)]
    levels = np.arange(0.1, height, 1.6)
    n = rng.integers(5, 25)
    at, level = rng.uniform(-half + 0.6, half - 0.6, n), rng.choice(levels, n)
    size = rng.uniform([0.3, 0.3, 0.4], [0.6, 0.5, 1.3], (n, 3))
    return Solids.join(
        boxes(posts),
        boxes(-half, -0.5, levels, half, 0.5, levels + 0.1),
        boxes(at - size[:, 0], -size[:, 1], level, at + size[:, 0], size[:, 1], level + size[:, 2]),
    )


def fence(rng: np.random.Generator, length: float) -> Solids:
    """Posts with rails, pickets or boards."""
    height = rng.uniform(0.8, 2.2)
    kind, rails = rng.integers(3), np.linspace(0.3, height - 0.1, rng.integers(2, 5))
    posts = poles(0.04, spread(length, 2.2), 0, -0.5, height)
    parts = [posts, boxes(-length / 2, -0.02, rails, length / 2, 0.02, rails + 0.08)]
    if kind == 1:
        x = np.arange(-length / 2, length / 2, rng.uniform(0.15, 0.3))
        parts.append(boxes(x - 0.03, -0.03, -0.2, x + 0.03, 0, height))
    if kind == 2:
        parts.append(boxes(-length / 2, 0, 0, length / 2, 0.03, height))
    return Solids.join(*parts)


def guard_rail(rng: np.random.Generator, length: float) -> Solids:
    posts = np.arange(-length / 2, length / 2, 3.0)
    return Solids.join(
        boxes(posts - 0.05, 0, -0.8, posts + 0.05, 0.15, 0.7),
        boxes(-length / 2, -0.08, 0.45, length / 2, 0.0, 0.75),
    )


def noise_barrier(rng: np.random.Generator, length: float) -> Solids:
    height = rng.uniform(2, 5)
    posts = np.arange(-length / 2, length / 2 + 0.1, 4.0)
    return Solids.join(
        boxes(-length / 2, 0, -1.5, length / 2, 0.12, height),
        boxes(posts - 0.12, -0.1, -1.5, posts + 0.12, 0.25, height + 0.1),
    )


def gantry(rng: np.random.Generator, span: float) -> Solids:
    """A bridge of signs over a road along x."""
    height = rng.uniform(5.5, 7)
    boards = rng.uniform(-span / 2 + 2, span / 2 - 2, 3)
    return Solids.join(
        rods([(0.2, 0, y, -1, 0, y, height) for y in (-span / 2, span / 2)]),
        boxes(-0.25, -span / 2, height, 0.25, span / 2, height + 0.5),
        boxes(-0.3, boards - 1.5, height - 0.5, -0.25, boards + 1.5, height + 1.8),
    )


def bridge(rng: np.random.Generator, span: float) -> Solids:
    """A bridge over a road along x: deck, parapets, piers, abutments."""
    half, height = rng.uniform([3, 5], [8, 6.5])
    piers = np.array([[x, y, -1] for x in (-half * 0.6, half * 0.6) for y in (-span / 2, 0, span / 2)])
    return Solids.join(
        boxes(-half, -span, height, half, span, height + 1.0),
        boxes([(x, -span, height, x + 0.3, span, height + 2) for x in (-half, half - 0.3)]),
        rods(0.5, *piers.T, *piers.T[:2], piers[:, 2] + (height + 1)),
        boxes([(-half, -span, -2, half, -span * 0.75, height), (-half, span * 0.75, -2, half, span, height)]),
    )
