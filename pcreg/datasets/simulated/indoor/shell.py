"""Floor, ceiling and walls with their openings, frames, skirting and sockets."""

from collections.abc import Sequence

import numpy as np

from pcreg.datasets.simulated.indoor.draws import between, one_of
from pcreg.datasets.simulated.indoor.piece import pose
from pcreg.datasets.simulated.solids import Solids, boxes, rods

WALL = 0.15  # thickness, metres
Opening = tuple[float, float, float, float]  # x0, x1, z0, z1 of a window or a passage


def shell(
    rng: np.random.Generator, width: float, depth: float, height: float, openings: Sequence[Sequence[Opening]]
) -> Solids:
    """A room over (0, 0) to (width, depth); `openings` of the walls at y = depth, x = width, y = 0, x = 0."""
    slabs = boxes(
        [(-1, -1, -WALL, width + 1, depth + 1, 0), (-1, -1, height, width + 1, depth + 1, height + WALL)]
    )
    skirting = rng.uniform(0.04, 0.12) if rng.random() < 0.7 else 0.0
    cornice = rng.uniform(0.03, 0.09) if rng.random() < 0.25 else 0.0
    parts = [slabs]
    for (T, length), holes in zip(walls(width, depth), openings, strict=True):
        parts.append(_wall(rng, length, height, holes, skirting, cornice).placed(T))
    return Solids.join(*parts).uneven(rng.uniform(0.0, 0.002))


def walls(width: float, depth: float) -> list[tuple[np.ndarray, float]]:
    """The frame (4, 4) in the room and the length of each wall, with its face at y = 0 and the room at -y."""
    return [
        (pose(0, depth, 0, 0), width),
        (pose(width, depth, 0, -90), depth),
        (pose(width, 0, 0, 180), width),
        (pose(0, 0, 0, 90), depth),
    ]


def _wall(
    rng: np.random.Generator,
    length: float,
    height: float,
    openings: Sequence[Opening],
    skirting: float,
    cornice: float,
) -> Solids:
    """A wall along x; windows (z0 > 0) have bars, a frame and a sill, passages a frame."""
    rows, x = [], -WALL
    frame, out = rng.uniform(0.03, 0.1), rng.uniform(0.01, 0.04)
    for x0, x1, z0, z1 in sorted(openings):
        rows += [(x, 0, 0, x0, WALL, height), (x0, 0, z1, x1, WALL, height), (x, -0.012, 0, x0, 0, skirting)]
        rows += [(x0 - frame, -out, z0, x0, WALL, z1), (x1, -out, z0, x1 + frame, WALL, z1)]
        rows.append((x0 - frame, -out, z1, x1 + frame, WALL, z1 + frame))
        if z0 > 0:
            rows += [(x0, 0, 0, x1, WALL, z0), (x0, -0.012, 0, x1, 0, skirting)]
            rows.append((x0 - 0.05, -rng.uniform(0.03, 0.2), z0 - 0.03, x1 + 0.05, 0, z0))
            for a in np.linspace(x0, x1, rng.integers(2, 5)):
                rows.append((a - 0.03, 0.06, z0, a + 0.03, 0.11, z1))
            for a in (z0 + 0.03, z1 - 0.03, z0 + (z1 - z0) * one_of(rng, [0.35, 0.65, 1.0])):
                rows.append((x0, 0.06, a - 0.03, x1, 0.11, a + 0.03))
        x = x1
    rows += [(x, 0, 0, length + WALL, WALL, height), (x, -0.012, 0, length, 0, skirting)]
    if cornice:
        rows.append((0, -cornice, height - cornice, length, 0, height))
    for _ in range(rng.integers(1, 5)):  # sockets and switches
        at, z = rng.uniform(0.2, length - 0.2), one_of(rng, [0.3, 1.1])
        rows.append((at - 0.04, -0.012, z - 0.04, at + 0.04, 0, z + 0.04))
    return boxes([row for row in rows if row[3] > row[0] and row[5] > row[2]])


def passage_beyond(rng: np.random.Generator, height: float) -> Solids:
    """A piece of corridor behind the wall, seen through a passage, y from WALL to about 2 m."""
    deep, half = between(rng, [0.9, 0.8], [2.5, 2.5])
    rows = [
        (-half, WALL + deep, 0, half, WALL + deep + 0.1, height),
        (-half - 0.1, WALL, 0, -half, WALL + deep, height),
    ]
    rows.append((half, WALL, 0, half + 0.1, WALL + deep, height))
    rail = rods([(0.02, -half, WALL + deep - 0.06, 0.95, half, WALL + deep - 0.06, 0.95)])
    return Solids.join(*([boxes(rows), rail] if rng.random() < 0.4 else [boxes(rows)]))
