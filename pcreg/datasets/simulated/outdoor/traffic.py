"""Vehicles and people. Each stands on the origin, heading along x, z up, metres."""

import numpy as np

from pcreg.datasets.simulated.solids import Material, Solids, balls, boxes, rods
from pcreg.geometry.se3 import translation


def car(rng: np.random.Generator) -> Solids:
    """A hatchback, a saloon or an estate of average size."""
    half, wide, roof = rng.uniform([1.9, 0.82, 1.38], [2.3, 0.92, 1.62])
    bonnet = rng.uniform(0.75, 1.0)
    boot = rng.choice([0.0, 0.15, rng.uniform(0.4, 0.7)])
    waist = rng.uniform(0.82, 0.95)
    paint = rng.choice([Material.MATT, Material.MATT, Material.DARK])
    front, rear = half - bonnet - 0.15, -half + boot + 0.05
    body = Solids.join(
        boxes(-half, -wide, 0.28, half, wide, 0.62),
        boxes(-half + 0.06, -wide + 0.02, 0.6, half - 0.12, wide - 0.02, waist - 0.08),
        boxes(rear - 0.1, -wide + 0.04, waist - 0.1, front + 0.25, wide - 0.04, waist),
        boxes(rear + 0.35, -wide + 0.16, roof - 0.06, front - 0.6, wide - 0.16, roof),
        rods(0.14, half - 0.1, -wide + 0.05, 0.5, half - 0.1, wide - 0.05, 0.5),
        boxes(front - 0.35, -wide - 0.14, waist - 0.02, front - 0.2, wide + 0.14, waist + 0.1),
    )
    # Two leaning boxes make the trapezium of the windows.
    middle, glass = (rear + front) / 2, (waist, roof - 0.02, wide - 0.1)
    panes = Solids.join(
        _leaning(middle - 0.5, front, *glass, -0.7), _leaning(rear, middle + 0.2, *glass, 0.4)
    )
    wheels = _wheels(0.31, 0.1, [half - 0.75, -half + 0.7], wide - 0.09)
    return Solids.join(body.of(paint), panes.of(Material.GLASS), wheels)


def van(rng: np.random.Generator) -> Solids:
    half, wide, roof = rng.uniform([2.3, 0.92, 1.9], [3.0, 1.02, 2.7])
    body = Solids.join(
        boxes(-half, -wide, 0.3, half - 0.15, wide, 1.05),
        boxes(half - 0.2, -wide + 0.05, 0.3, half, wide - 0.05, 0.85),
        boxes(-half, -wide + 0.04, 1.0, half - 1.5, wide - 0.04, roof),
        _leaning(half - 1.6, half - 0.9, 1.0, roof, wide - 0.06, -0.45),
    )
    pane = _leaning(half - 1.2, half - 0.45, 1.0, roof - 0.1, wide - 0.1, -0.5)
    wheels = _wheels(0.34, 0.12, [half - 0.8, -half + 0.8], wide - 0.1)
    return Solids.join(body, pane.of(Material.GLASS), wheels)


def truck(rng: np.random.Generator) -> Solids:
    half, wide, roof = rng.uniform([3.5, 1.15, 3.0], [7.5, 1.27, 4.0])
    body = Solids.join(
        boxes(-half, -wide, 1.1, half - 2.4, wide, roof),
        boxes(half - 2.0, -wide + 0.05, 0.4, half, wide - 0.05, 2.2),
        boxes(-half, -0.4, 0.7, half - 1.0, 0.4, 1.1),
    )
    cab = boxes(half - 2.0, -wide + 0.08, 2.2, half - 0.08, wide - 0.08, rng.uniform(2.7, 3.3))
    axles = [half - 1.0, *(-half + np.arange(rng.integers(1, 4)) * 1.3 + 1.0)]
    return Solids.join(body, cab.of(Material.GLASS), _wheels(0.5, 0.15, axles, wide - 0.17))


def bus(rng: np.random.Generator) -> Solids:
    half, wide, roof = rng.uniform([4.5, 1.2, 2.8], [9.0, 1.28, 3.4])
    body = boxes([(-half, -wide, 0.35, half, wide, 1.2), (-half, -wide, roof - 0.5, half, wide, roof)])
    panes = boxes(-half + 0.03, -wide + 0.03, 1.2, half - 0.03, wide - 0.03, roof - 0.5)
    wheels = _wheels(0.48, 0.15, [half - 2.0, -half + 2.2], wide - 0.15)
    return Solids.join(body, panes.of(Material.GLASS), wheels)


def bicycle(rng: np.random.Generator) -> Solids:
    frame = [(-0.5, 0, 0.35), (-0.1, 0, 0.3), (0.35, 0, 0.75), (-0.2, 0, 0.8), (0.5, 0, 0.35), (0.4, 0, 1.0)]
    ends = (0, 1), (1, 2), (1, 3), (3, 2), (4, 5), (0, 3)
    tubes = rods([(0.025, *frame[a], *frame[b]) for a, b in ends])
    lean = rng.uniform(-0.1, 0.1)
    bar = rods(0.015, 0.38, -0.28, 1.0, 0.38, 0.28, 1.0)
    wheels = rods([(0.34, -0.5, -0.02, 0.35, -0.5, 0.02, 0.35), (0.34, 0.5, -0.02, 0.35, 0.5, 0.02, 0.35)])
    seat = boxes(-0.3, -0.07, 0.86, -0.08, 0.07, 0.92)
    return Solids.join(tubes, bar, wheels, seat).sheared(1, 2, lean)


def person(rng: np.random.Generator) -> Solids:
    """A walking person, one leg ahead of the other."""
    step, swing = rng.uniform([0.0, -0.25], [0.35, 0.25])
    return Solids.join(
        rods([(0.085, side * step, side * 0.1, 0, 0, side * 0.09, 0.85) for side in (1, -1)]),
        rods([(0.055, side * swing, side * 0.3, 0.85, 0, side * 0.2, 1.4) for side in (1, -1)]),
        balls(0, 0, 1.15, 0.15, 0.23, 0.36),
        balls(0.02, 0, 1.63, 0.12, 0.12 * 0.9, 0.12 * 1.15),
    )


def cyclist(rng: np.random.Generator) -> Solids:
    rider = person(rng).placed(translation([-0.15, 0, 0.15]))
    return Solids.join(bicycle(rng), rider)


def _wheels(radius: float, half: float, x: list[float], y: float) -> Solids:
    rows = [(radius, at, side - half, radius, at, side + half, radius) for at in x for side in (-y, y)]
    return rods(rows).of(Material.DARK)


def _leaning(x0: float, x1: float, z0: float, z1: float, wide: float, shift: float) -> Solids:
    """A box whose top is moved by `shift` along x."""
    return boxes(x0, -wide, z0, x1, wide, z1).sheared(0, 2, shift / (z1 - z0), z0)
