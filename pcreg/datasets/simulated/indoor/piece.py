"""A piece of furniture: solids in their own frame, and the places on it where small things may stand.

Frame of a piece: its back to the wall y = 0, its width along x, its front towards -y, standing on z = 0.
Small things, and things that stand free, have their middle at the origin. Metres.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import cos, radians, sin
from typing import TypeVar

import numpy as np

from pcreg.datasets.simulated.solids import Solids, boxes

T = TypeVar("T")

# NumPy's `uniform` and `choice` make arrays, which takes several times as long for a few numbers.


def between(rng: np.random.Generator, low: Sequence[float], high: Sequence[float]) -> list[float]:
    """The numbers of `rng.uniform(low, high)`: each between its own bounds."""
    return [a + (b - a) * rng.random() for a, b in zip(low, high, strict=True)]


def one_of(rng: np.random.Generator, options: Sequence[T]) -> T:
    """The option that `rng.choice(options)` would draw, without conversion by NumPy."""
    return options[rng.integers(len(options))]


@dataclass(frozen=True)
class Piece:
    """Furniture, and its `tops`: level rectangles (x0, y0, x1, y1, z) that can carry something."""

    solids: Solids
    tops: Sequence[tuple[float, float, float, float, float]] = ()

    def carrying(self, others: Iterable[Solids]) -> "Piece":
        return Piece(Solids.join(self.solids, *others), self.tops)


def pose(
    x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0
) -> np.ndarray:
    """The motion (4, 4) that rotates about x, then y, then z, in degrees, and moves to (x, y, z)."""
    roll, pitch, yaw = radians(roll), radians(pitch), radians(yaw)
    cx, cy, cz = cos(roll), cos(pitch), cos(yaw)
    sx, sy, sz = sin(roll), sin(pitch), sin(yaw)
    return np.array(
        [
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, x],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, y],
            [-sy, cy * sx, cy * cx, z],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def extent(solids: Solids) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner (3,) of a box around all solids, a little larger for rotated ones."""
    low, high = extents(solids)
    return np.minimum.reduce(low), np.maximum.reduce(high)


def extents(solids: Solids) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corners (P, 3) of a box about each solid."""
    x, y, z, centre = solids.T_world_unit[:, :3].transpose(2, 1, 0).copy()  # columns, (3, P) each
    half = np.abs(x) + np.abs(y) + np.abs(z)
    return (centre - half).T, (centre + half).T


def ring(
    radius: float, z0: float, z1: float, count: int = 12, thickness: float = 0.004, flare: float = 1.0
) -> Solids:
    """A round wall about the z axis, open above: bins, bowls, shades; `flare` widens its upper rim."""
    middle = radius * (1 + flare) / 2
    wide = middle * np.tan(np.pi / count) * 1.03
    length = np.hypot(z1 - z0, radius * (flare - 1))
    lean = np.degrees(np.arctan2(radius * (flare - 1), z1 - z0))
    slat = boxes(-thickness / 2, -wide, -length / 2, thickness / 2, wide, length / 2)
    return slat.copies(_turns(count) @ pose(middle, 0, (z0 + z1) / 2, 0, lean))


@cache
def _turns(count: int) -> np.ndarray:
    """Rotations (count, 4, 4) about the z axis, in even steps of a full turn."""
    return np.stack([pose(yaw=360 * n / count) for n in range(count)])
