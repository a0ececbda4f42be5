"""Sampled points with their descriptors."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Samples:
    """Descriptors of S sampled points, and where each lies."""

    features: Tensor  # (S, C)
    points: Tensor  # (S, 3) float32, metres
    cloud: Tensor  # (S,) int64, that the point belongs to
