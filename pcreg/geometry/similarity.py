"""Similarities in three dimensions, Sim(3): (4, 4) float64 matrices p -> s R p + t with a scale s > 0."""

import numpy as np

from pcreg.geometry.se3 import procrustes


def enlargement(scale: float) -> np.ndarray:
    """The similarity (4, 4) that enlarges by `scale` about the origin."""
    return np.diag([scale, scale, scale, 1.0])


def scale_of(T: np.ndarray) -> float:
    """The scale of a similarity (4, 4)."""
    return float(np.cbrt(np.linalg.det(T[:3, :3])))


def umeyama(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The similarity (4, 4) that takes source (N, 3) onto target (N, 3) with least squared error.

    Umeyama, PAMI 1991: the rotation is that of `procrustes`, reflections excluded. N >= 3 points not on one
    line. The scale is 0 or less if the clouds have nothing in common.
    """
    R = procrustes(source, target)[:3, :3]
    centre, other = source.mean(0), target.mean(0)
    turned = (source - centre) @ R.T
    scale = ((target - other) * turned).sum() / (turned**2).sum()
    T = np.eye(4)
    T[:3, :3] = scale * R
    T[:3, 3] = other - T[:3, :3] @ centre
    return T
