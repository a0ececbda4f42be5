"""Scenes made of simple solids: unit shapes moved by affine maps."""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike


class Shape(IntEnum):
    """Where a point (x, y, z) of the unit shape may be."""

    BOX = 0  # |x|, |y|, |z| <= 1
    BALL = 1  # x^2 + y^2 + z^2 <= 1
    ROD = 2  # x^2 + y^2 <= 1, |z| <= 1
    CONE = 3  # x^2 + y^2 <= ((1 - z) / 2)^2, |z| <= 1: its tip at z = 1


@dataclass(frozen=True)
class Solids:
    """P solids: `shape` (P,) and `T_world_unit` (P, 4, 4) float64, an affine map each.

    `relief` (P,) says how uneven their surfaces are, in metres; none if left out. `cast` does not see it:
    it is for a sensor to add to what it measures.
    """

    shape: np.ndarray
    T_world_unit: np.ndarray
    relief: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.relief is None:
            object.__setattr__(self, "relief", np.zeros(len(self.shape)))

    def __len__(self) -> int:
        return len(self.shape)

    def placed(self, T: np.ndarray) -> "Solids":
        """All of them moved by T (4, 4), or each by its own T (P, 4, 4)."""
        return Solids(self.shape, T @ self.T_world_unit, self.relief)

    def uneven(self, relief: float) -> "Solids":
        """All of them with this relief in metres."""
        return replace(self, relief=np.full(len(self), relief))

    def copies(self, T: np.ndarray) -> "Solids":
        """All of them moved by each of T (N, 4, 4): N P solids, copy after copy."""
        moved = T[:, None] @ self.T_world_unit
        return Solids(np.tile(self.shape, len(T)), moved.reshape(-1, 4, 4), np.tile(self.relief, len(T)))

    @staticmethod
    def join(*parts: "Solids") -> "Solids":
        if not parts:
            return Solids(np.empty(0, np.int64), np.empty((0, 4, 4)))
        return Solids(*(np.concatenate(arrays) for arrays in zip(*map(_arrays, parts), strict=True)))


def box(low: ArrayLike, high: ArrayLike) -> Solids:
    """The boxes between pairs of corners (N, 3) or (3,), along the axes."""
    low, high = np.broadcast_arrays(np.atleast_2d(low).astype(float), np.atleast_2d(high).astype(float))
    return _solids(Shape.BOX, np.eye(3) * ((high - low) / 2)[:, None], (low + high) / 2)


def ball(radius: ArrayLike, centre: ArrayLike, squash: ArrayLike = (1, 1, 1)) -> Solids:
    """Balls of a radius each, or one for all, about centres (N, 3) or (3,); with `squash` ellipsoids."""
    centre = np.atleast_2d(centre).astype(float)
    size = np.broadcast_to(np.reshape(radius, (-1, 1)) * np.asarray(squash, float), centre.shape)
    return _solids(Shape.BALL, np.eye(3) * size[:, None], centre)


def rod(radius: ArrayLike, bottom: ArrayLike, top: ArrayLike) -> Solids:
    """Cylinders between the centres of their ends, (N, 3) or (3,) each."""
    return _along(Shape.ROD, radius, bottom, top)


def cone(radius: ArrayLike, bottom: ArrayLike, tip: ArrayLike) -> Solids:
    """Cones from the centres of their bases to their tips, (N, 3) or (3,) each."""
    return _along(Shape.CONE, radius, bottom, tip)


def stacked(*values: ArrayLike) -> np.ndarray:
    """Rows (N, len(values)) for the four functions below, of numbers and arrays (N,)."""
    return np.stack(np.broadcast_arrays(*map(np.atleast_1d, values)), 1)


def boxes(rows: ArrayLike) -> Solids:
    """Boxes, one per row: the lower corner and the upper one (N, 6)."""
    rows = np.reshape(rows, (-1, 6))
    return box(rows[:, :3], rows[:, 3:])


def balls(rows: ArrayLike) -> Solids:
    """Ellipsoids along the axes, one per row: the centre and the three radii (N, 6)."""
    rows = np.reshape(rows, (-1, 6))
    return ball(1.0, rows[:, :3], rows[:, 3:])


def rods(rows: ArrayLike) -> Solids:
    """Cylinders, one per row: the radius and the centres of both ends (N, 7)."""
    rows = np.reshape(rows, (-1, 7))
    return rod(rows[:, :1], rows[:, 1:4], rows[:, 4:])


def cones(rows: ArrayLike) -> Solids:
    """Cones, one per row: the radius, the centre of the base and the tip (N, 7)."""
    rows = np.reshape(rows, (-1, 7))
    return cone(rows[:, :1], rows[:, 1:4], rows[:, 4:])


def _arrays(solids: Solids) -> tuple[np.ndarray, ...]:
    return solids.shape, solids.T_world_unit, solids.relief


def _solids(shape: Shape, linear: np.ndarray, centre: np.ndarray) -> Solids:
    T = np.zeros((len(centre), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = linear, centre, 1
    return Solids(np.full(len(centre), shape, np.int64), T)


def _along(shape: Shape, radius: ArrayLike, bottom: ArrayLike, top: ArrayLike) -> Solids:
    bottom, top = np.broadcast_arrays(np.atleast_2d(bottom).astype(float), np.atleast_2d(top).astype(float))
    half = (top - bottom) / 2
    axis = half / np.linalg.norm(half, axis=1, keepdims=True)
    across = _cross(axis, np.eye(3)[np.abs(axis).argmin(1)])
    across *= np.reshape(radius, (-1, 1)) / np.linalg.norm(across, axis=1, keepdims=True)
    linear = np.stack([across, _cross(axis, across), half], 2)
    return _solids(shape, linear, (bottom + top) / 2)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of rows (N, 3) each: NumPy's own takes four times as long for a few."""
    (ax, ay, az), (bx, by, bz) = a.T, b.T
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], 1)
