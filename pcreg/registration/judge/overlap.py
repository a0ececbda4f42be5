"""Where two surfaces touch under a motion: found once, for the evidence about it and for its covariance."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import dot, transform


@dataclass(frozen=True)
class Overlap:
    """K of N source points have a target point within a distance, and M target points are there."""

    moved: np.ndarray  # (N, 3) float64, metres: the source in the target's frame
    touching: np.ndarray  # (N,) bool, of the source
    touched: np.ndarray  # (M,) bool, of the target: with a source point within the distance
    points: np.ndarray  # (K, 3) float64, metres: what touches of `moved`
    normals: np.ndarray  # (K, 3) float64, of the target points nearest to these
    offsets: np.ndarray  # (K,) float64, metres along the normals, from these points to those target points

    @staticmethod
    def of(
        source: np.ndarray,
        target: np.ndarray,
        normals: np.ndarray,
        T_target_source: np.ndarray,
        distance: float,
    ) -> "Overlap":
        """That of source (N, 3) and target (M, 3), N, M >= 1, with the unit normals (M, 3) of the target.

        Points closer than `distance` metres touch.
        """
        moved = transform(T_target_source, source)
        apart, partner = nearest(moved, cKDTree(target), distance)
        touching = np.isfinite(apart)
        touched = np.isfinite(nearest(target, cKDTree(moved), distance)[0])
        rows = np.flatnonzero(touching)
        partner = partner.take(rows)
        points, there = moved.take(rows, axis=0), normals.take(partner, axis=0)
        offsets = dot(target.take(partner, axis=0) - points, there)
        return Overlap(moved, touching, touched, points, there, offsets)
