"""Random changes to a training pair that leave its truth known."""

from dataclasses import dataclass

import numpy as np

from pcreg.errors import InputError
from pcreg.geometry import inverse, random_rotation, se3, transform


@dataclass(frozen=True)
class Augmentation:
    """Turn each cloud about its centre, scale both alike, shake every point.

    The truth follows every change; the translation is scaled along with the clouds.
    """

    rotate: bool = True  # each cloud by its own rotation, uniform over all of them
    scale: tuple[float, float] = (1.0, 1.0)  # range of the common factor
    jitter: float = 0.0  # metres, standard deviation per axis

    def __post_init__(self):
        low, high = self.scale
        if not 0 < low <= high:
            raise InputError(
                f"augment.scale={list(self.scale)}: give a range [low, high] with 0 < low <= high"
            )
        if self.jitter < 0:
            raise InputError(f"augment.jitter={self.jitter}: give metres, 0 for none")

    def __call__(
        self, source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """source (N, 3), target (M, 3), T_target_source (4, 4) -> the same three, changed."""
        factor = rng.uniform(*self.scale)
        source, target, T = source * factor, target * factor, T_target_source.copy()
        T[:3, 3] *= factor
        if self.rotate:
            turn_source, turn_target = _turn(source, rng), _turn(target, rng)
            source, target = transform(turn_source, source), transform(turn_target, target)
            T = turn_target @ T @ inverse(turn_source)
        if self.jitter:
            source = source + rng.normal(0, self.jitter, source.shape)
            target = target + rng.normal(0, self.jitter, target.shape)
        return source, target, T


def _turn(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random rotation (4, 4) about the centre of the points."""
    R, centre = random_rotation(rng), points.mean(0)
    return se3(R, centre - R @ centre)
