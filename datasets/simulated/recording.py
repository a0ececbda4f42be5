"""Clouds of one scene from several places: what the generators make, and training draws pairs of."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class Recording:
    """Clouds, each in its sensor's frame, and where the sensor stood."""

    clouds: list[Tensor]  # (N, 3) float32 each, metres
    T_world_cloud: np.ndarray  # (clouds, 4, 4) float64
