"""What single points say about a refined motion, and the networks that sum it up.

Means and counts hide which points fit: a wall on a wall proves little, an edge on an edge much, and neither
does where the descriptors of the points differ. So a network sees some points of both clouds one by one, and
pools what it makes of them by mean and maximum, as PointNet does (Qi et al., CVPR 2017). Its log-odds depend
neither on the order of the points nor on which cloud is the source.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from pcreg.arrays import Array, Index, every_nth, like, namespace, take, to_host
from pcreg.geometry.se3 import dot, lengths
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.estimation.agreement import DescriptorAgreement
from pcreg.registration.judge.free_space import FURTHEST, Sight
from pcreg.registration.judge.overlap import Contact, Overlap

MAX_POINTS = 192  # of each cloud
MAX_MATCH_VOXELS = 8.0  # distance of matches from which on they count alike, as a point without one does
CURVED_VARIATION = 0.06  # of surfaces that count as curved; a plane with noise has 0.01
CHANNELS = 14  # numbers of a point
MAX_DEVIATIONS = 4.0  # from the mean of a channel, beyond which the network has seen next to nothing


class _Cloud(NamedTuple):
    """One of two clouds, with N points on its surface and K keypoints."""

    keypoints: Array  # (N,) int64, the nearest one of each point of the surface
    features: Array  # (K, C), as DescriptorAgreement has them
    fixed: Array  # (N, 3), channels that no motion changes
    matched: np.ndarray  # (P,) int64, the keypoints of the mutual matches


class _Surface(NamedTuple):
    """The surface of a cloud in the frame of the target."""

    cloud: _Cloud
    points: Array  # (N, 3) float64, metres
    normals: Array  # (N, 3) float64


class PointComparison:
    """How single points of two clouds fit, by motion."""

    def __init__(
        self,
        source: DescribedCloud,
        target: DescribedCloud,
        matches: np.ndarray,
        agreement: DescriptorAgreement,
        voxel: float,
    ) -> None:
        """Compare clouds of one `voxel` size in metres, whose mutual matches are rows (P, 2) of keypoints."""
        self.source, self.target, self.agreement, self.voxel = source, target, agreement, voxel
        features = agreement.source_features, agreement.target_features
        self._clouds = [
            _Cloud(Index(cloud.points).query(cloud.surface)[1], rows, _fixed(cloud, voxel), matched)
            for cloud, rows, matched in zip((source, target), features, matches.T, strict=True)
        ]

    def __call__(
        self,
        T_target_source: np.ndarray,
        overlap: Overlap,
        sights: tuple[Sight, Sight],
        distances: np.ndarray,
    ) -> np.ndarray:
        """Observe points under a motion.

        Args:
            T_target_source: (4, 4).
            overlap: Of the surfaces under the motion.
            sights: Of each cloud by the sensor of the other one.
            distances: (P,) metres, of the matches under the motion.

        Returns:
            (K, CHANNELS) float32, of at most MAX_POINTS of either cloud that touch the other one or that its
            sensor could see.
        """
        turned = self.source.normals @ like(T_target_source[:3, :3], self.source.normals).T
        source = _Surface(self._clouds[0], overlap.moved, turned)
        target = _Surface(self._clouds[1], self.target.surface, self.target.normals)
        of_source = self._observed(source, target, overlap.source, sights[0], distances)
        of_target = self._observed(target, source, overlap.target, sights[1], distances)
        return np.concatenate([of_source, of_target]).astype(np.float32)

    def _observed(
        self, own: _Surface, other: _Surface, contact: Contact, sight: Sight, distances: np.ndarray
    ) -> np.ndarray:
        xp, seen = namespace(own.points), sight.behind > -FURTHEST
        rows = every_nth(xp.nonzero(contact.touching | seen)[0], MAX_POINTS)
        partners = xp.zeros_like(own.cloud.keypoints)
        partners[contact.rows] = contact.partners
        partner, keypoint = take(partners, rows), take(own.cloud.keypoints, rows)
        upright, features = take(other.normals, partner), take(own.cloud.features, keypoint)
        there = take(other.cloud.features, take(other.cloud.keypoints, partner))
        similarity = (xp.sum(features * there, axis=1) - self.agreement.threshold) / self.agreement.deviation
        of_matches = np.full(len(own.cloud.features), MAX_MATCH_VOXELS)
        of_matches[own.cloud.matched] = (distances / self.voxel).clip(max=MAX_MATCH_VOXELS)
        residual = take(like(of_matches, own.points), keypoint)
        touching, covered = take(contact.touching, rows), take(seen, rows)
        offset = xp.abs(dot(take(other.points, partner) - take(own.points, rows), upright)) / self.voxel
        counts = xp.count_nonzero(contact.touching), xp.count_nonzero(seen & ~contact.touching)
        columns = [
            touching,
            xp.where(touching, offset, 1.0),
            xp.where(touching, dot(take(own.normals, rows), upright), 0.0),
            xp.where(touching, similarity, 0.0),
            *take(own.cloud.fixed, rows).T,
            take(sight.behind, rows),
            take(sight.all_behind, rows),
            covered,
            residual,
            residual < MAX_MATCH_VOXELS,
            *(xp.full_like(offset, math.log1p(float(count))) for count in counts),
        ]
        return to_host(xp.stack([xp.astype(each, xp.float64) for each in columns], axis=1))


def _fixed(cloud: DescribedCloud, voxel: float) -> Array:
    """Channels (N, 3): variation of the surface, range from the viewpoint, and cosine of the incidence."""
    xp, sight = namespace(cloud.surface), cloud.surface - like(cloud.viewpoint, cloud.surface)
    distance = lengths(sight)
    incidence = xp.abs(dot(sight, cloud.normals)) / xp.maximum(distance, 1e-9)
    variation = (cloud.variation / CURVED_VARIATION).clip(0, 3)
    return xp.stack([variation, xp.log1p(distance / voxel), incidence], axis=1)


@dataclass(frozen=True, eq=False)
class PointNetwork:
    """A few small networks over points; their log-odds are averaged."""

    mean: np.ndarray  # (CHANNELS,) in training, and
    deviation: np.ndarray  # (CHANNELS,)
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # weights (networks, in, out), biases (networks, out)

    @staticmethod
    @cache
    def shipped() -> "PointNetwork":
        """The network beside the shipped model of confidence."""
        from safetensors.numpy import load

        return PointNetwork.of(load(files("pcreg.weights").joinpath("verdict.safetensors").read_bytes()))

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> "PointNetwork":
        """The network in a file written by `python -m pcreg.training.judge fit`."""
        layers = tuple((arrays[f"points.weights.{n}"], arrays[f"points.biases.{n}"]) for n in range(4))
        return PointNetwork(arrays["points.mean"], arrays["points.deviation"], layers)

    def __call__(self, points: np.ndarray) -> float:
        """Log-odds that observed points (K, CHANNELS) add to those of a motion; K may be 0."""
        if len(points) == 0:
            return 0.0
        x = scaled(points, self.mean, self.deviation)
        first, second, third, (weights, biases) = [(each, b[:, None]) for each, b in self.layers]
        x = _relu(_relu(x, *first), *second)
        pooled = np.concatenate([x.mean(1, keepdims=True), x.max(1, keepdims=True)], axis=-1)
        return float((_relu(pooled, *third) @ weights + biases).mean())


def scaled(points: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Observed points (K, CHANNELS) as a network sees them."""
    return ((points - mean) / (deviation + 1e-3)).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)


def _relu(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    return np.maximum(x @ weights + biases, 0)
