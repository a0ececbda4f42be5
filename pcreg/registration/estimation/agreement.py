"""How alike the descriptors are where two clouds touch.

A wrong motion lays floors and walls on floors and walls, too, and nearest points are as close as under the
right one. But a descriptor knows a metre or two around its point, and under a wrong motion something else
stands there. This tells motions apart even where hardly any two descriptors are each other's nearest.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from pcreg.features.base import Description
from pcreg.geometry.se3 import procrustes, transform
from pcreg.geometry.subsample import every_nth

MAX_POINTS = 2_500  # of the source
DEVIATIONS = 0.7  # above the mean cosine of any two points, from which on descriptors are alike
ITERATIONS = 10
ROWS_AT_ONCE = 1 << 11  # descriptors
MIN_TOUCHING = 10  # points with like descriptors, to refine a motion by


class DescriptorAgreement:
    """The agreement of descriptors under a motion between two described clouds."""

    def __init__(self, source: Description, target: Description, distance: float):
        """Of clouds with N and M points, at least one each; points within `distance` metres touch."""
        self.distance = distance
        self.points, self.target_points = every_nth(source.points, MAX_POINTS), target.points
        self.tree = cKDTree(target.points)
        mean = np.concatenate([source.features, target.features]).mean(0)
        described = every_nth(source.features, MAX_POINTS), target.features
        self.features, self.target_features = (_unit(features, mean) for features in described)
        cosines = self.features @ every_nth(self.target_features, MAX_POINTS).T
        mean_cosine = cosines.mean()
        cosines -= mean_cosine  # in place: there are six million
        cosines *= cosines
        deviation = np.sqrt(cosines.mean())
        self.usual = float(mean_cosine + DEVIATIONS * deviation)
        self.deviation = float(deviation) or 1.0  # descriptors that are all alike tell nothing

    def __call__(self, motions: np.ndarray) -> np.ndarray:
        """By how much cosines of touching points exceed what is usual, in standard deviations per point.

        Of motions (H, 4, 4): (H,).
        """
        return np.array([self.of_cloud_and_overlap(T)[0] for T in motions])

    def of_cloud_and_overlap(self, T_target_source: np.ndarray) -> tuple[float, float]:
        """The same of one motion (4, 4) per source point, and per touching point; 0 if none touches."""
        excess = (self._touching(T_target_source).cosines - self.usual) / self.deviation
        total = float(excess.sum())
        return total / len(self.points), total / max(len(excess), 1)

    def refine(self, T_target_source: np.ndarray) -> np.ndarray:
        """The motion (4, 4) after a few steps that bring points with like descriptors closer.

        The motion itself if fewer than ten such points touch. Iterative closest points, each of which counts
        the more the closer it is and the more alike it is.
        """
        T = T_target_source
        for _ in range(ITERATIONS):
            closer = self._closer(T)
            if closer is None:
                break
            T = closer
        return T

    def _closer(self, T: np.ndarray) -> np.ndarray | None:
        """The motion (4, 4) after one step from T; None if too few points with like descriptors touch."""
        touching = self._touching(T)
        weights = np.maximum(touching.cosines - self.usual, 0)
        weights *= 1 - (touching.distances / self.distance) ** 2
        if (weights > 0).sum() < MIN_TOUCHING:
            return None
        return procrustes(self.points[touching.source], self.target_points[touching.target], weights)

    def _touching(self, T_target_source: np.ndarray) -> "Touching":
        moved = transform(T_target_source, self.points)
        distances, nearest = self.tree.query(moved, distance_upper_bound=self.distance)
        (source,) = np.isfinite(distances).nonzero()
        target = nearest[source]
        cosines = np.einsum("nc,nc->n", self.features[source], self.target_features[target])
        return Touching(source, target, distances[source], cosines)


@dataclass(frozen=True)
class Touching:
    """Source points (P,) with a target point within the distance, and that one."""

    source: np.ndarray  # (P,) int64, rows
    target: np.ndarray  # (P,) int64, rows
    distances: np.ndarray  # (P,) metres
    cosines: np.ndarray  # (P,) of their descriptors


def _unit(features: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The features (N, C) less their mean (C,), of unit length; some at a time, which the cache holds."""
    unit = np.empty_like(features)
    for start in range(0, len(features), ROWS_AT_ONCE):
        rows = unit[start : start + ROWS_AT_ONCE]
        np.subtract(features[start : start + ROWS_AT_ONCE], mean, out=rows)
        rows /= np.maximum(np.sqrt((rows * rows).sum(1, keepdims=True)), 1e-9)
    return unit
