"""How alike the descriptors are where two clouds touch.

A wrong motion lays floors and walls on floors and walls, too, and nearest points are as close as under the
right one. But a descriptor knows a metre or two around its point, and under a wrong motion something else
stands there. This tells motions apart even where hardly any two descriptors are each other's nearest.
"""

import numpy as np
from scipy.spatial import cKDTree

from pcreg.features.base import Description
from pcreg.geometry.se3 import transform
from pcreg.geometry.subsample import every_nth

MAX_POINTS = 2_500  # of the source
DEVIATIONS = 0.7  # above the mean cosine of any two points, from which on descriptors are alike


class DescriptorAgreement:
    """The agreement of descriptors under a motion between two described clouds."""

    def __init__(self, source: Description, target: Description, distance: float):
        """Points within `distance` metres touch."""
        self.distance = distance
        self.points, self.target = every_nth(source.points, MAX_POINTS), cKDTree(target.points)
        mean = np.concatenate([source.features, target.features]).mean(0)
        described = every_nth(source.features, MAX_POINTS), target.features
        self.features, self.target_features = (_unit(features - mean) for features in described)
        cosines = self.features @ every_nth(self.target_features, MAX_POINTS).T
        self.usual = float(cosines.mean() + DEVIATIONS * cosines.std())
        self.deviation = float(cosines.std()) or 1.0  # descriptors that are all alike tell nothing

    def __call__(self, T_target_source: np.ndarray) -> float:
        """By how much cosines of touching points exceed what is usual, in standard deviations per point."""
        distances, nearest = self.target.query(
            transform(T_target_source, self.points), distance_upper_bound=self.distance
        )
        touching = np.isfinite(distances)
        cosines = np.einsum("nc,nc->n", self.features[touching], self.target_features[nearest[touching]])
        return float((cosines - self.usual).sum() / self.deviation / len(self.points))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
