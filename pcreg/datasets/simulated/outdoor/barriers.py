"""Fences, rails, walls and gantries of roads, with lengths along x and fronts to -y."""

import numpy as np

from pcreg.datasets.simulated.outdoor.things import Things
from pcreg.datasets.simulated.solids import box, boxes, rod, rods, stacked


def fence(rng: np.random.Generator, length: float) -> Things:
    """Posts with rails, pickets or boards."""
    height = rng.uniform(0.8, 2.2)
    posts = np.linspace(-length / 2, length / 2, max(2, round(length / 2.2) + 1))
    parts = [rods(stacked(0.04, posts, 0, -0.5, posts, 0, height))]
    kind = rng.integers(3)
    rails = np.linspace(0.3, height - 0.1, rng.integers(2, 5))
    parts.append(boxes(stacked(-length / 2, -0.02, rails, length / 2, 0.02, rails + 0.08)))
    if kind == 1:
        x = np.arange(-length / 2, length / 2, rng.uniform(0.15, 0.3))
        parts.append(boxes(stacked(x - 0.03, -0.03, -0.2, x + 0.03, 0, height)))
    if kind == 2:
        parts.append(box([-length / 2, 0, 0], [length / 2, 0.03, height]))
    return Things.of(*parts)


def guard_rail(rng: np.random.Generator, length: float) -> Things:
    posts = np.arange(-length / 2, length / 2, 3.0)
    return Things.of(
        boxes(stacked(posts - 0.05, 0, -0.8, posts + 0.05, 0.15, 0.7)),
        box([-length / 2, -0.08, 0.45], [length / 2, 0.0, 0.75]),
    )


def noise_barrier(rng: np.random.Generator, length: float) -> Things:
    height = rng.uniform(2, 5)
    posts = np.arange(-length / 2, length / 2 + 0.1, 4.0)
    return Things.of(
        box([-length / 2, 0, -1.5], [length / 2, 0.12, height]),
        boxes(stacked(posts - 0.12, -0.1, -1.5, posts + 0.12, 0.25, height + 0.1)),
    )


def gantry(rng: np.random.Generator, span: float) -> Things:
    """A bridge of signs over a road along x."""
    height = rng.uniform(5.5, 7)
    boards = rng.uniform(-span / 2 + 2, span / 2 - 2, 3)
    return Things.of(
        rods([(0.2, 0, y, -1, 0, y, height) for y in (-span / 2, span / 2)]),
        box([-0.25, -span / 2, height], [0.25, span / 2, height + 0.5]),
        boxes(stacked(-0.3, boards - 1.5, height - 0.5, -0.25, boards + 1.5, height + 1.8)),
    )


def bridge(rng: np.random.Generator, span: float) -> Things:
    """A bridge over a road along x: deck, parapets, piers, abutments."""
    half, height = rng.uniform([3, 5], [8, 6.5])
    piers = np.array([[x, y, -1] for x in (-half * 0.6, half * 0.6) for y in (-span / 2, 0, span / 2)])
    return Things.of(
        box([-half, -span, height], [half, span, height + 1.0]),
        box(
            [[-half, -span, height], [half - 0.3, -span, height]],
            [[-half + 0.3, span, height + 2], [half, span, height + 2]],
        ),
        rod(0.5, piers, piers + np.array([0, 0, height + 1])),
        box(
            [[-half, -span, -2], [-half, span * 0.75, -2]],
            [[half, -span * 0.75, height], [half, span, height]],
        ),
    )
