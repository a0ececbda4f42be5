"""Solid-state LiDARs whose pattern does not repeat, after Livox' Mid-40, Mid-70, Avia and Mid-360.

Two counter-rotating prisms bend the beam, and its offsets from the axis add up to a rosette (first order
of Risley prisms; Brazeal et al., Sensors 21(14), 2021, model the Mid-40's), rotated for each of several
lasers. A LiDAR with a full horizontal field rotates a mirror instead, which nods many times per rotation;
that path, a sine, is ours. Fields, rates and ranges are those of the data sheets. The speeds are ours: their
ratio is not one of small numbers, so that paths do not repeat.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

GROUP = 64  # rays that are cast together
MOMENT = 0.0125  # seconds in which the sensor stands still
PRISMS = (121.57, -77.73)  # turns per second
NODS, MIRROR = 489.3, 10.37  # per second


@dataclass(frozen=True)
class SolidStateLidar:
    """A model, and for how long (`seconds`) it gathers the points of a sweep."""

    horizontal: float  # field of view in degrees; 360: a mirror turns
    vertical: tuple[float, float]  # degrees, from and to
    rate: float  # points per second
    far: float  # metres
    lasers: int = 1
    near: float = 0.3
    noise: float = 0.02  # metres, sigma of the range
    min_return: float = 1.2e-5  # reflected fraction times cosine over squared range (1/m^2)
    seconds: float = 0.1

    def with_seconds(self, seconds: float, points: int) -> "SolidStateLidar":
        """Gathering for so long, and as many points as before or less: `points` per sweep at most."""
        return replace(self, seconds=seconds, rate=min(self.rate, points / seconds))

    @property
    def moments(self) -> int:
        return max(1, round(self.seconds / MOMENT))

    @property
    def turns(self) -> float:
        return self.seconds / 0.1

    def directions(self, seconds: Tensor, laser: Tensor) -> Tensor:
        """Unit vectors (..., 3) in the sensor's frame at some times (...,) float64, of lasers (...,)."""
        low, high = self.vertical
        phase = 2 * torch.pi * laser / self.lasers
        if self.horizontal == 360:
            azimuth = 2 * torch.pi * MIRROR * seconds
            nod = (2 * torch.pi * NODS * seconds + phase).sin()
            elevation = torch.deg2rad((low + high) / 2 + (high - low) / 2 * nod)
        else:
            one, other = (2 * torch.pi * speed * seconds + phase for speed in PRISMS)
            azimuth = torch.deg2rad(self.horizontal / 4 * (one.cos() + other.cos()))
            up = (one.sin() + other.sin()) / 2
            elevation = torch.deg2rad((low + high) / 2 + (high - low) / 2 * up)
        level = elevation.cos()
        return torch.stack([level * azimuth.cos(), level * azimuth.sin(), elevation.sin()], -1)

    def rays(self, sweeps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Rays of a moment, sorted by direction, in groups of GROUP rays as `Lidar` has them."""
        device = generator.device
        groups = max(1, round(self.seconds * self.rate / self.moments / GROUP))
        shape = sweeps, self.moments, groups * GROUP
        number = torch.arange(shape[1] * shape[2], device=device).reshape(shape[1:])
        # Seconds or minutes after it was switched on
        begun = 600 * torch.rand(sweeps, 1, 1, generator=generator, device=device, dtype=torch.float64)
        time = begun + self.seconds * number / number.numel()
        ray = self.directions(time, number % self.lasers).float()
        # Columns as wide as a group is high
        width, height = min(self.horizontal, 360 * MIRROR * MOMENT), self.vertical[1] - self.vertical[0]
        azimuth = torch.rad2deg(torch.atan2(ray[..., 1], ray[..., 0]))
        column = (azimuth / (width * height / groups) ** 0.5).floor()
        order = (10 * column + ray[..., 2]).argsort(-1)
        ray = ray.gather(2, order[..., None].expand_as(ray))
        moment = torch.arange(self.moments, device=device).repeat_interleave(groups)
        return ray.reshape(sweeps, -1, GROUP, 3), moment

    def range_errors(self, generator: torch.Generator) -> Tensor:
        return 0.6 * self.noise * torch.randn(1, 1, generator=generator, device=generator.device)


SOLID_STATE_LIDARS = {
    "Mid-40": SolidStateLidar(38.4, (-19.2, 19.2), 100_000, 120),
    "Mid-70": SolidStateLidar(70.4, (-35.2, 35.2), 100_000, 120),
    "Avia": SolidStateLidar(70.4, (-38.6, 38.6), 240_000, 120, lasers=6, min_return=3e-6),
    "Mid-360": SolidStateLidar(360, (-7, 52), 200_000, 70, lasers=4, min_return=6e-5),
}
