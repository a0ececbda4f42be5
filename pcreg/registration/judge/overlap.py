"""The overlap of two surfaces under a motion, found once for its evidence and its covariance."""

from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, Index, namespace, take
from pcreg.geometry.se3 import dot, transform


@dataclass(frozen=True)
class Overlap:
    """K of N source points touch the target: they have a target point within a distance."""

    moved: Array  # (N, 3) float64, metres: the source in the frame of the target
    touching: Array  # (N,) bool, of the source
    touched: Array  # (M,) bool, of the target: with a source point within the distance
    rows: Array  # (K,) int64, of the source points that touch
    points: Array  # (K, 3) float64, metres: those of `moved`
    normals: Array  # (K, 3) float64, of the target points nearest to these
    offsets: Array  # (K,) float64, metres along the normals, from these points to those target points

    @staticmethod
    def of(
        source: Array, target: Array, normals: Array, T_target_source: np.ndarray, distance: float
    ) -> "Overlap":
        """The overlap within `distance` of source (N, 3) and target (M, 3) with its unit normals (M, 3)."""
        xp, moved = namespace(source), transform(T_target_source, source)
        apart, partner = Index(target).query(moved, max_distance=distance)
        touching = apart < distance
        touched = Index(moved).query(target, max_distance=distance)[0] < distance
        rows = xp.nonzero(touching)[0]
        partner = take(partner, rows)
        points, there = take(moved, rows), take(normals, partner)
        offsets = dot(take(target, partner) - points, there)
        return Overlap(moved, touching, touched, rows, points, there, offsets)
