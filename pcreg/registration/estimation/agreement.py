"""Descriptor similarity where two clouds touch under a motion.

A wrong motion, too, may lay floors and walls on floors and walls, as close as the right one does. But a
descriptor covers a metre or two around its point, and under a wrong motion these surroundings differ. So
descriptor similarity separates motions even if hardly any two descriptors are mutual nearest neighbours.
"""

from typing import NamedTuple

import numpy as np

from pcreg.arrays import Array, Index, every_nth, like, namespace, take, to_host
from pcreg.features.base import Description
from pcreg.geometry.se3 import moved_by_each, procrustes

MAX_POINTS = 2_500  # of the source
DEVIATIONS = 0.7  # above the mean cosine of any two points, from which descriptors are similar
ITERATIONS = 10
MIN_TOUCHING = 10  # points with similar descriptors, by which a motion is refined


class DescriptorAgreement:
    """Descriptor similarity of two described clouds, by motion."""

    def __init__(self, source: Description, target: Description, distance: float) -> None:
        """Compare clouds with N and M points, at least one each; points within `distance` metres touch."""
        xp, self.distance = namespace(target.features), distance
        points, self.index = every_nth(source.points, MAX_POINTS), Index(like(target.points, target.features))
        self.points, self.target_points = to_host(points), to_host(target.points)
        mean = xp.mean(xp.concat([source.features, target.features], axis=0), axis=0)
        self.features = _unit(every_nth(source.features, MAX_POINTS), mean)
        self.target_features = _unit(target.features, mean)
        cosines = self.features @ every_nth(self.target_features, MAX_POINTS).T
        mean_cosine = xp.mean(cosines)
        cosines -= mean_cosine  # in place: there are six million
        cosines *= cosines
        deviation = xp.sqrt(xp.mean(cosines))
        self.threshold = float(mean_cosine + DEVIATIONS * deviation)
        self.deviation = float(deviation) or 1.0  # descriptors that are all alike separate nothing

    def __call__(self, motions: np.ndarray) -> np.ndarray:
        """Mean (H,) over source points of cosine less threshold, in deviations; 0 if they touch none."""
        excesses = [(each.cosines - self.threshold) / self.deviation for each in self._touching(motions)]
        return np.array([float(excess.sum()) / len(self.points) for excess in excesses])

    def refine(self, motions: np.ndarray) -> np.ndarray:
        """Motions (H, 4, 4) after a few ICP steps weighted by descriptors; unchanged if few touch."""
        T, moving = motions.copy(), list(range(len(motions)))
        for _ in range(ITERATIONS):
            if not moving:
                break
            for h, touching in zip(list(moving), self._touching(T[moving]), strict=True):
                weights = np.maximum(touching.cosines - self.threshold, 0)
                weights *= 1 - (touching.distances / self.distance) ** 2
                if (weights > 0).sum() < MIN_TOUCHING:
                    moving.remove(h)
                    continue
                source, target = self.points[touching.points], self.target_points[touching.target]
                T[h] = procrustes(source, target, weights)
        return T

    def _touching(self, motions: np.ndarray) -> list["Touching"]:
        """Find the touching points under each of motions (H, 4, 4), on the descriptors' device."""
        moved = like(moved_by_each(motions, self.points).reshape(-1, 3), self.features)
        xp = namespace(moved)
        distances, nearest = self.index.query(moved, max_distance=self.distance)
        # Points that touch nothing are dropped below: selecting the others here would wait for the device
        partners = take(self.target_features, nearest.clip(max=len(self.target_points) - 1))
        cosines = xp.einsum("nc,hnc->hn", self.features, partners.reshape(-1, *self.features.shape))
        shape = len(motions), len(self.points)
        by_motion = (to_host(rows).reshape(shape) for rows in (distances, nearest, cosines))
        found = []
        for distance, row, cosine in zip(*by_motion, strict=True):
            points = np.flatnonzero(distance < np.inf)
            found.append(Touching(points, row[points], distance[points], cosine[points]))
        return found


class Touching(NamedTuple):
    """P moved source points with a target point within the distance, and the nearest one, on the host."""

    points: np.ndarray  # (P,) int64, rows of the sampled source points
    target: np.ndarray  # (P,) int64, rows of the target
    distances: np.ndarray  # (P,) metres
    cosines: np.ndarray  # (P,) of their descriptors


def _unit(features: Array, mean: Array) -> Array:
    """The features (N, C) less their mean (C,), of unit length."""
    xp, unit = namespace(features), features - mean
    unit /= xp.maximum(xp.sqrt(xp.sum(unit * unit, axis=1, keepdims=True)), 1e-9)
    return unit
