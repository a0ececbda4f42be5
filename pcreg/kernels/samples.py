"""Sampled points with their descriptors."""

from dataclasses import dataclass

from torch import Tensor

IGNORED = -1e30  # similarity of samples that do not count; finite, for gradients


@dataclass(frozen=True)
class Samples:
    """Descriptors of S sampled points, and where each lies."""

    features: Tensor  # (S, C)
    points: Tensor  # (S, 3) float32, metres
    cloud: Tensor  # (S,) int64, that the point belongs to
