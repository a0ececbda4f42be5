"""Buildings and walls, with their fronts along x at y = 0, facing -y, and standing on z = 0, metres.

Piers and bands of wall stand before a glazed core and leave windows free: a facade of any size takes a few
dozen boxes.
"""

import numpy as np

from pcreg.datasets.simulated.solids import Material, Solids, boxes, cones, poles, rods
from pcreg.geometry.se3 import translation

DEEP = 3.0  # metres that a building reaches below the ground, for slopes


def block(rng: np.random.Generator, width: float, depth: float, height: float) -> Solids:
    """A town house, an office or a shop: storeys of recessed windows, doors, balconies, cornice, roof."""
    recess = rng.uniform(0.08, 0.4)
    ground_floor, storey = rng.uniform([3.0, 2.7], [4.5, 3.6])
    sill, lintel = rng.uniform([0.5, 0.25], [1.1, 0.7])
    floors = np.arange(ground_floor, height - 1.5, storey)
    half = width / 2
    # Bands of wall between the storeys.
    low = np.concatenate([[-DEEP], floors - lintel, [height - lintel]])
    high = np.concatenate([[rng.choice([0.3, 0.8])], np.minimum(floors + sill, height), [height]])
    walls = [boxes(-half, 0, low, half, depth, high)]
    pier, gap = rng.uniform([0.25, 1.5], [0.6, 3.5])
    x = spread(width, gap)
    for y0, y1 in ((0, recess + 0.05), (depth - recess - 0.05, depth)):
        walls.append(boxes(x - pier, y0, -DEEP, x + pier, y1, height))
    y = spread(depth, gap * 1.3) + depth / 2
    y0, y1 = (0, depth) if rng.random() < 0.5 else (y - pier, y + pier)  # a blank wall, or piers
    for x0, x1 in ((-half, -half + recess + 0.05), (half - recess - 0.05, half)):
        walls.append(boxes(x0, y0, -DEEP, x1, y1, height))
    cornice, thick = rng.uniform([0.05, 0.2], [0.6, 0.6])
    walls.append(boxes(-half - 0.02, -cornice, height - 0.1, half + 0.02, depth, height + thick))
    if rng.random() < 0.5 and len(floors):  # balconies
        x = rng.permutation(x[:-1] + gap / 2)[: rng.integers(1, 5)]
        x, z = (grid.ravel() for grid in np.meshgrid(x, floors))
        balcony, wide = rng.uniform([0.6, 0.6], [1.4, 1.3])
        walls.append(boxes(x - wide, -balcony, z - 0.15, x + wide, 0.1, z))
        walls.append(boxes(x - wide, -balcony, z, x + wide, -balcony + 0.05, z + 1.0))
    if rng.random() < 0.4:  # an awning or a canopy over the pavement
        x0, x1 = np.sort(rng.uniform(-half, half, 2))
        walls.append(boxes(x0, -rng.uniform(0.8, 2.2), 2.6, x1 + 1, 0.1, 2.75))
    door = rng.uniform(-half + 1, half - 1)
    jambs = np.array([door - 1.0, door + 0.8])
    walls.append(boxes(jambs, -0.15, 0, jambs + 0.2, 0.1, 2.5))
    walls.append(boxes(door - 1.0, -0.4, -0.5, door + 1.0, 0.1, rng.uniform(0.1, 0.4)))
    core = boxes(-half + recess, recess, -DEEP, half - recess, depth - recess, height)
    return Solids.join(*walls, _roof(rng, width, depth, height), core.of(Material.GLASS))


def house(rng: np.random.Generator, _width: float) -> Solids:
    """A detached house of one or two storeys with a gabled roof, perhaps a garage and a porch."""
    width, depth = rng.uniform([8, 7], [15, 12])
    height = rng.choice([rng.uniform(2.8, 3.5), rng.uniform(5.0, 6.5)])
    recess, pier = rng.uniform([0.1, 0.6], [0.2, 1.2])
    x = spread(width, rng.uniform(2.5, 4))
    walls = [
        boxes(x - pier, 0, -DEEP, x + pier, 0.3, height),
        boxes([(-width / 2, 0, -DEEP, width / 2, 0.3, 0.9), (-width / 2, 0, 2.2, width / 2, 0.3, 3.0)]),
        boxes(-width / 2, recess, -DEEP, width / 2, depth, height),
        _gable(width + 0.8, depth + 0.8, height, rng.uniform(0.5, 1.0), -0.4),
        boxes(width * 0.2, depth * 0.3, height, width * 0.2 + 0.7, depth * 0.3 + 0.7, height + 0.6 * depth),
    ]
    if rng.random() < 0.5:
        side = rng.choice([-1, 1]) * (width / 2 + 1.6)
        walls.append(boxes(side - 1.7, 1, -DEEP, side + 1.7, 7, 2.7))
    if rng.random() < 0.5:
        at = rng.uniform(-width / 4, width / 4)
        walls.append(boxes(at - 1.3, -1.6, 2.3, at + 1.3, 0, 2.5))
        walls.append(rods([(0.08, x, -1.5, -0.5, x, -1.5, 2.4) for x in (at - 1.2, at + 1.2)]))
    return Solids.join(*walls)


def shed(rng: np.random.Generator, _width: float) -> Solids:
    """An industrial hall: ribbed walls, gates, a flat or a low gabled roof."""
    width, depth, height = rng.uniform([20, 15, 5], [60, 40, 12])
    x = spread(width, rng.uniform(3, 7))
    gates = rng.choice(x[:-1], min(len(x) - 1, rng.integers(1, 4)), replace=False) + 1.5
    walls = [
        boxes(-width / 2, 0.15, -DEEP, width / 2, depth, height),
        boxes(x - 0.2, -0.1, -DEEP, x + 0.2, 0.2, height),
        boxes(-width / 2, -0.15, height - 0.6, width / 2, 0.2, height),
        boxes(gates, -1.5, 4, gates + 3.5, 0.2, 4.2),
        boxes(gates - 0.2, -0.2, -1, gates, 0.2, 4),
    ]
    if rng.random() < 0.5:
        walls.append(_gable(width, depth, height, 0.2, 0.0))
    return Solids.join(*walls)


def arcade(rng: np.random.Generator, width: float, height: float) -> Solids:
    """A building over a row of columns, a gallery behind them."""
    deep, above = rng.uniform([2.5, 3.0], 5)
    x = spread(width, rng.uniform(2.5, 5))
    columns = pillars(rng, rng.uniform(0.2, 0.45), x, 0.4, -1, above)
    upper = block(rng, width, deep + 8, height).placed(translation([0, 0, above + DEEP]))
    back = block(rng, width, 6, above).placed(translation([0, deep, 0]))
    return Solids.join(upper, back, columns)


def pillars(rng: np.random.Generator, half: float, x, y, low: float, high: float) -> Solids:
    """Round or square columns at x, y (N,)."""
    if rng.random() < 0.5:
        return poles(half, x, y, low, high)
    return boxes(x - half, y - half, low, x + half, y + half, high)


def garden_wall(rng: np.random.Generator, length: float) -> Solids:
    height = rng.uniform(0.6, 2.5)
    x = spread(length, rng.uniform(2.5, 6))
    return Solids.join(
        boxes(-length / 2, -0.12, -1, length / 2, 0.12, height),
        boxes(-length / 2, -0.17, height, length / 2, 0.17, height + 0.08),
        boxes(x - 0.2, -0.2, -1, x + 0.2, 0.2, height + 0.25),
    )


def tank(rng: np.random.Generator) -> Solids:
    radius, height = rng.uniform([1, 3], [4, 9])
    roof = cones(radius, 0, 0, height, 0, 0, height + 0.4 * radius)
    return Solids.join(poles(radius, 0, 0, -1, height), roof)


def spread(width: float, gap: float) -> np.ndarray:
    """Places along a width, with gaps of about `gap`, including both ends."""
    return np.linspace(-width / 2, width / 2, max(2, round(width / gap) + 1))


def _roof(rng: np.random.Generator, width: float, depth: float, height: float) -> Solids:
    if rng.random() < 0.6:
        return _gable(width, depth, height, rng.uniform(0.3, 0.9), 0.0)
    x, y = rng.uniform(-width / 4, width / 4), depth * rng.uniform(0.3, 0.7)
    return boxes(x - 2, y - 1.5, height, x + 2, y + 1.5, height + rng.uniform(1, 3))


def _gable(width: float, depth: float, height: float, steep: float, front: float) -> Solids:
    """Two slabs that lean on each other over the ridge."""
    x, low, high, rear = width / 2, height - 0.1, height + 0.15, front + depth
    rising = boxes(-x, front, low, x, front + depth / 2, high).sheared(2, 1, steep, front)
    falling = boxes(-x, rear - depth / 2, low, x, rear, high).sheared(2, 1, -steep, rear)
    return Solids.join(rising, falling)
