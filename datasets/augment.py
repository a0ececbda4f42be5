"""Random changes to a training pair that leave its truth known."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import inverse, limited_rotation, random_rotation, se3, transform
from pcreg.runtime.errors import InputError

BEAM_SPACING = 0.4  # degrees of elevation that are dropped together: that of 64 beams, about


@dataclass(frozen=True)
class Augmentation:
    """Crop each cloud, drop points and beams, scale both, move viewpoints; then rotate each and add jitter.

    The truth follows every change; the translation is scaled along with the clouds.
    """

    rotate: bool = True  # both clouds, each about its origin, by a rotation uniform over all of them
    # degrees between the two rotations; 180: they are independent
    max_relative_rotation: float = 180.0
    scale: tuple[float, float] = (1.0, 1.0)  # range of the common factor
    jitter: float = 0.0  # metres, standard deviation per axis
    crop: float = 0.0  # largest fraction of a cloud that a random plane cuts off
    drop: float = 0.0  # largest fraction of its points that are dropped at random
    beams: float = 0.0  # largest fraction of a spinning sensor's beams that are dropped
    viewpoint: float = 0.0  # fraction of the clouds whose origin moves along a ray, away from the sensor

    def __post_init__(self):
        low, high = self.scale
        if not 0 < low <= high:
            raise InputError(
                f"augment.scale={list(self.scale)}: give a range [low, high] with 0 < low <= high"
            )
        if self.jitter < 0:
            raise InputError(f"augment.jitter={self.jitter}: give metres, 0 for none")
        if not 0 <= self.max_relative_rotation <= 180:
            raise InputError(
                f"augment.max_relative_rotation={self.max_relative_rotation}: give degrees from 0 to 180"
            )
        for name in ("crop", "drop", "beams", "viewpoint"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"augment.{name}={getattr(self, name)}: give a share from 0 to below 1")

    def reduce(
        self, source: Tensor, target: Tensor, T_target_source: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, np.ndarray]:
        """Crop, drop, scale and move viewpoints: source (N, 3), target (M, 3), T (4, 4) -> the three.

        Each cloud stays in its sensor's frame, to be downsampled there as at inference; or, as where the
        sensor's place is only estimated, in one beside it.
        """
        noise = _noise(source, rng)
        factor = rng.uniform(*self.scale)
        T = T_target_source.copy()
        T[:3, 3] *= factor
        source, target = (self._dropped(cloud, rng, noise) * factor for cloud in (source, target))
        source, T_source = self._beside_sensor(source, rng)
        target, T_target = self._beside_sensor(target, rng)
        return source, target, inverse(T_target) @ T @ T_source

    def move(
        self, source: Tensor, target: Tensor, T_target_source: np.ndarray, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor, np.ndarray]:
        """Rotate and add jitter: source (N, 3), target (M, 3), T (4, 4) -> the three."""
        noise = _noise(source, rng)
        turn = random_rotation(rng)
        other = limited_rotation(rng, self.max_relative_rotation) @ turn
        source, turn_source = self._moved(source, turn, noise)
        target, turn_target = self._moved(target, other, noise)
        return source, target, turn_target @ T_target_source @ inverse(turn_source)

    def _moved(self, points: Tensor, R: np.ndarray, noise: torch.Generator) -> tuple[Tensor, np.ndarray]:
        """The points rotated by R about the sensor, with jitter; and the motion (4, 4)."""
        turn = np.eye(4)
        if self.rotate:
            turn = se3(R, np.zeros(3))
            points = transform(torch.from_numpy(turn).to(points), points)
        if self.jitter:
            points = points + self.jitter * _normal(points, noise)
        return points, turn

    def _beside_sensor(self, points: Tensor, rng: np.random.Generator) -> tuple[Tensor, np.ndarray]:
        """The points in a frame whose origin is elsewhere, perhaps; and its pose (4, 4) in theirs.

        That is up to half the way to one of the points, where nothing stands: from most such places surfaces
        are seen from the same side as from the sensor.
        """
        T = np.eye(4)
        if self.viewpoint and len(points) and rng.random() < self.viewpoint:
            place = rng.uniform(0, 0.5) * points[int(rng.integers(len(points)))]
            T[:3, 3] = place.cpu().numpy()
            points = points - place
        return points, T

    def _dropped(self, points: Tensor, rng: np.random.Generator, noise: torch.Generator) -> Tensor:
        kept = torch.ones(len(points), dtype=torch.bool, device=points.device)
        if self.crop and len(points):
            direction = torch.from_numpy(random_rotation(rng)[0]).to(points)
            along = points @ direction
            cut = int(len(points) * rng.uniform(0, self.crop))
            kept &= along >= along.kthvalue(cut + 1).values
        if self.drop:
            kept &= _uniform(len(points), noise) >= rng.uniform(0, self.drop)
        if self.beams:
            elevation = torch.atan2(points[:, 2], torch.hypot(points[:, 0], points[:, 1]))
            bands = torch.floor(
                (torch.rad2deg(elevation) + 90 + rng.uniform(0, BEAM_SPACING)) / BEAM_SPACING
            ).long()
            missing = _uniform(int(182 / BEAM_SPACING), noise) < rng.uniform(0, self.beams)
            kept &= ~missing[bands]
        return points[kept] if self.crop or self.drop or self.beams else points


def _noise(points: Tensor, rng: np.random.Generator) -> torch.Generator:
    """Random numbers where the points are."""
    return torch.Generator(points.device).manual_seed(int(rng.integers(2**63)))


def _uniform(count: int, noise: torch.Generator) -> Tensor:
    return torch.rand(count, generator=noise, device=noise.device)


def _normal(like: Tensor, noise: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=noise, device=like.device, dtype=like.dtype)
