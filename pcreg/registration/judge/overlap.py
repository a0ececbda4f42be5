"""The overlap of two surfaces under a motion, for evidence and covariance."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pcreg.arrays import Array, Index, namespace, take
from pcreg.geometry.se3 import dot, transform


class Contact(NamedTuple):
    """K of the N points of a cloud that touch the other one, and the nearest points there."""

    touching: Array  # (N,) bool
    rows: Array  # (K,) int64, of the points that touch
    partners: Array  # (K,) int64, rows of the other cloud

    @staticmethod
    def of(points: Array, other: Array, distance: float) -> "Contact":
        """The contact of points (N, 3) with others (M, 3), closer than `distance` metres."""
        xp = namespace(points)
        near, partners = Index(other, few=True).query(points, max_distance=distance)
        touching = near < distance
        rows = xp.nonzero(touching)[0]
        return Contact(touching, rows, take(partners, rows))


@dataclass(frozen=True)
class Overlap:
    """Two clouds with N and M points under a motion."""

    moved: Array  # (N, 3) float64, metres: the source in the frame of the target
    source: Contact  # of its points with the target
    target: Contact  # of its points with the moved source
    points: Array  # (K, 3) float64, metres: those of `moved` that touch
    normals: Array  # (K, 3) float64, of the target points nearest to these
    offsets: Array  # (K,) float64, metres along the normals, from these points to those target points

    @staticmethod
    def of(
        source: Array, target: Array, normals: Array, T_target_source: np.ndarray, distance: float
    ) -> "Overlap":
        """The overlap within `distance` of source (N, 3) and target (M, 3) with its unit normals (M, 3)."""
        moved = transform(T_target_source, source)
        here, there = Contact.of(moved, target, distance), Contact.of(target, moved, distance)
        points, upright = take(moved, here.rows), take(normals, here.partners)
        offsets = dot(take(target, here.partners) - points, upright)
        return Overlap(moved, here, there, points, upright, offsets)
