"""Motions that an overlap does not constrain, such as along a corridor.

Overlapping surfaces may slide along each other if that leaves every point in the plane of its partner.
Point-to-plane registration does not determine such motions (Gelfand et al., 3DIM 2003).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigh

from pcreg.arrays import Array, namespace, to_host
from pcreg.registration.estimation.icp import plane_rows

MIN_OBSERVABILITY = 0.01  # in a smooth corridor the noise of the normals alone gives 0.003


@dataclass(frozen=True)
class DegenerateDirection:
    """A motion that leaves the surfaces of an overlap on each other."""

    kind: Literal["slide", "turn"]
    axis: tuple[float, float, float]  # a unit vector of either sign, in the frame of the points

    def __str__(self) -> str:
        axis = ", ".join(f"{round(value, 2) + 0.0:.2f}" for value in self.axis)
        return f"slide along ({axis})" if self.kind == "slide" else f"turn about an axis along ({axis})"


@dataclass(frozen=True)
class Observability:
    """Constraint of a motion by the surfaces of its overlap."""

    min_observability: float  # 0..1/3, of the least constrained direction
    free: tuple[DegenerateDirection, ...]  # the directions that are not constrained, slides first


def observability(points: Array, normals: Array) -> Observability:
    """Constraint of point-to-plane registration by points (N, 3) with unit normals (N, 3) of either sign.

    The observability of a motion is the mean square of its part along the normals, divided by that of the
    whole motion. For a slide along v this is the mean of (n v)^2. A turn is taken about an axis through the
    middle, together with the slide that compensates it best. Below 0.01 a direction is not constrained.
    Points on a line, or none, constrain nothing.
    """
    if len(points) == 0:
        return Observability(0.0, ())
    xp = namespace(points)
    arms = points - xp.mean(points, axis=0)
    turning = plane_rows(arms, normals)[:, :3]  # speed along the normals of a turn about each axis
    products = [normals.T @ normals, turning.T @ normals, turning.T @ turning, arms.T @ arms]
    slides, both, turns, spread = to_host(xp.stack(products)) / len(points)
    turns = turns - both @ np.linalg.pinv(slides, rcond=MIN_OBSERVABILITY, hermitian=True) @ both.T
    if np.trace(spread) == 0:
        return Observability(0.0, ())
    # The mean square speed of a turn about each axis; 1e-9 keeps it positive for points on a line
    inertia = np.trace(spread) * (1 + 1e-9) * np.eye(3) - spread
    least, free = [], []
    for kind, along_normals, whole in (("slide", slides, np.eye(3)), ("turn", turns, inertia)):
        shares, vectors = eigh(along_normals, whole)
        least.append(shares[0])
        free += [
            DegenerateDirection(kind, _axis(v))
            for share, v in zip(shares, vectors.T, strict=True)
            if share < MIN_OBSERVABILITY
        ]
    return Observability(float(max(min(least), 0.0)), tuple(free))


def growth_observability(points: Array, normals: Array) -> float:
    """Constraint of the scale by points (N, 3) with unit normals (N, 3) of either sign: 0..1.

    The mean square of a growth about the middle along the normals, together with the motion that compensates
    it best, divided by that of the whole growth. 0 for a plane, for the corner of a box and for all other
    surfaces that lie on themselves when they grow, and 0 without points.
    """
    points, normals = to_host(points), to_host(normals)
    arms = points - points.mean(0) if len(points) else points
    if not arms.any():
        return 0.0
    growth = (arms * normals).sum(1)
    radius = np.sqrt((arms**2).sum(1).mean())
    rows = plane_rows(arms / radius, normals)
    motion = np.linalg.pinv(rows.T @ rows, rcond=MIN_OBSERVABILITY, hermitian=True) @ rows.T @ growth
    return float(((growth - rows @ motion) ** 2).mean() / radius**2)


def _axis(vector: np.ndarray) -> tuple[float, float, float]:
    """The direction as a unit vector, its largest component positive, rounded to three decimals."""
    vector = vector * np.sign(vector[np.abs(vector).argmax()]) / np.linalg.norm(vector)
    x, y, z = (vector.round(3) + 0.0).tolist()  # + 0.0: no minus zeros
    return x, y, z
