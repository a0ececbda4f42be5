"""Models of LiDARs: spinning ones with 16 to 128 beams, and solid-state ones whose pattern does not repeat.

Angles from manuals (Velodyne HDL-64E S3, HDL-32E, VLP-16, VLP-32C; Hesai Pandar64; Ouster OS0 and OS1), in
degrees, elevation upwards. The solid-state ones follow Livox' Mid-40, Mid-70, Avia and Mid-360: two
counter-rotating prisms bend the beam into a rosette (first order of Risley prisms; Brazeal et al., Sensors
21(14), 2021), rotated for each laser; one with a full horizontal field rotates a mirror that nods. Fields,
rates and ranges are those of the data sheets; the speeds and the nodding are ours.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.draws import normal, uniform

BLOCK = 16  # columns that are cast together


@dataclass(frozen=True)
class SpinningLidar:
    """Model of a spinning LiDAR: elevations of beams (degrees), range and accuracy."""

    elevation: tuple[float, ...]
    columns: int  # firings per turn, a multiple of 2 BLOCK
    far: float  # metres
    near: float = 1.0
    noise: float = 0.015  # metres, sigma of the range
    min_return: float = 1.5e-6  # reflected fraction times cosine over squared range (1/m^2)

    turns = 1.0  # length of a sweep, in tenths of a second

    @property
    def moments(self) -> int:
        """Number of poses of the sensor in a sweep, one per block of columns."""
        return self.columns // BLOCK

    @property
    def rows(self) -> int:
        """Number of neighbouring beams cast together: a power of two, at most 16."""
        span = abs(self.elevation[0] - self.elevation[-1]) / len(self.elevation)
        return min(16, 2 ** int(np.log2(max(1.0, 10 / span))), len(self.elevation))

    def rays(self, sweeps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Unit directions (sweeps, G, R, 3) in the sensor's frame, and the groups' moments (G,) int64.

        The R rays of a group, `rows` neighbouring beams times BLOCK columns, have nearly the same direction.
        The directions of the beams have errors, which are the same in all sweeps, as those of one device.
        """
        device = generator.device
        beams = torch.tensor(self.elevation, dtype=torch.float32, device=device)
        elevation = self._per_beam(torch.deg2rad(beams + 0.05 * normal(generator, len(beams))))
        column = torch.arange(self.columns, device=device).reshape(self.moments, 1, BLOCK)
        first = uniform(generator, sweeps, 1, 1, 1, 1)
        azimuth = -2 * torch.pi * (column + first) / self.columns  # clockwise
        azimuth = azimuth + self._per_beam(torch.deg2rad(normal(generator, len(beams))))
        level, shape = elevation.cos(), azimuth.shape  # (sweeps, beams / rows, moments, rows, BLOCK)
        ray = torch.stack([level * azimuth.cos(), level * azimuth.sin(), elevation.sin().expand(shape)], -1)
        moment = torch.arange(self.moments, device=device).repeat(shape[1])
        return ray.flatten(3, 4).flatten(1, 2), moment

    def range_errors(self, generator: torch.Generator) -> Tensor:
        """Fixed range errors of one device in metres, broadcastable to (G, R)."""
        bias = self._per_beam(0.6 * self.noise * normal(generator, len(self.elevation)))
        return bias.expand(-1, self.moments, -1, BLOCK).flatten(2).flatten(0, 1)

    def _per_beam(self, values: Tensor) -> Tensor:
        """Reshape values (beams,) to (beams / rows, 1, rows, 1)."""
        return values.reshape(-1, 1, self.rows, 1)


def _even(low: float, high: float, beams: int) -> tuple[float, ...]:
    return tuple(np.linspace(high, low, beams))


# fmt: off
_VLP32C = (
    15, 10.333, 7, 4.667, 3.333, 2.333, 1.667, 1.333, 1, 0.667, 0.333, 0, -0.333, -0.667, -1, -1.333, -1.667,
    -2, -2.333, -2.667, -3, -3.333, -3.667, -4, -4.667, -5.333, -6.148, -7.254, -8.843, -11.31, -15.639, -25,
)
# fmt: on
_PANDAR64 = (15, 11, 8, 5, 3, *np.arange(12, -37, -1) / 6, *range(-7, -15, -1), -19, -25)
LIDARS = {
    "HDL-64E": SpinningLidar((*_even(-8.33, 2, 32), *_even(-24.33, -8.83, 32)), 2048, 80, 1.0, 0.02, 1.5e-6),
    "HDL-32E": SpinningLidar(_even(-30.67, 10.67, 32), 2176, 80, 1.0, 0.02, 3e-6),
    "VLP-16": SpinningLidar(_even(-15, 15, 16), 1792, 90, 0.8, 0.02, 3e-6),
    "VLP-32C": SpinningLidar(_VLP32C, 1792, 120, 1.0, 0.02, 1.5e-6),
    "Pandar64": SpinningLidar(_PANDAR64, 1792, 120, 0.5, 0.015, 1e-6),
    "OS1-64": SpinningLidar(_even(-22.5, 22.5, 64), 1024, 90, 0.6, 0.02, 4e-6),
    "OS1-128": SpinningLidar(_even(-22.5, 22.5, 128), 1024, 90, 0.6, 0.02, 3e-6),
    "OS0-32": SpinningLidar(_even(-45, 45, 32), 2048, 60, 0.4, 0.012, 5e-5),
    "OS0-64": SpinningLidar(_even(-45, 45, 64), 2048, 60, 0.4, 0.012, 5e-5),
    "OS0-128": SpinningLidar(_even(-45, 45, 128), 1024, 60, 0.4, 0.012, 5e-5),
}


GROUP = 64  # rays that are cast together
MOMENT = 0.0125  # seconds for which the sensor has one pose
PRISMS = (121.57, -77.73)  # turns per second
NODS, MIRROR = 489.3, 10.37  # per second


@dataclass(frozen=True)
class SolidStateLidar:
    """Model of a solid-state LiDAR, and the duration (`seconds`) of its sweeps."""

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
        """The model with sweeps of `seconds`, at its rate or at `points` per sweep if that is slower."""
        return replace(self, seconds=seconds, rate=min(self.rate, points / seconds))

    @property
    def moments(self) -> int:
        return max(1, round(self.seconds / MOMENT))

    @property
    def turns(self) -> float:
        return self.seconds / 0.1

    def directions(self, seconds: Tensor, laser: Tensor) -> Tensor:
        """Unit vectors (..., 3) in the sensor's frame at times `seconds` (...,) float64 of lasers (...,)."""
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
        """Same as `SpinningLidar.rays`; the rays of a moment are grouped by direction, GROUP rays each."""
        device = generator.device
        groups = max(1, round(self.seconds * self.rate / self.moments / GROUP))
        shape = sweeps, self.moments, groups * GROUP
        number = torch.arange(shape[1] * shape[2], device=device).reshape(shape[1:])
        # Up to ten minutes after the device was switched on
        begun = 600 * torch.rand(sweeps, 1, 1, generator=generator, device=device, dtype=torch.float64)
        time = begun + self.seconds * number / number.numel()
        ray = self.directions(time, number % self.lasers).float()
        # Sorting by columns as wide as a group is high makes compact groups.
        width, height = min(self.horizontal, 360 * MIRROR * MOMENT), self.vertical[1] - self.vertical[0]
        azimuth = torch.rad2deg(torch.atan2(ray[..., 1], ray[..., 0]))
        column = (azimuth / (width * height / groups) ** 0.5).floor()
        order = (10 * column + ray[..., 2]).argsort(-1)
        ray = ray.gather(2, order[..., None].expand_as(ray))
        moment = torch.arange(self.moments, device=device).repeat_interleave(groups)
        return ray.reshape(sweeps, -1, GROUP, 3), moment

    def range_errors(self, generator: torch.Generator) -> Tensor:
        return 0.6 * self.noise * normal(generator, 1, 1)


Lidar = SpinningLidar | SolidStateLidar
SOLID_STATE_LIDARS = {
    "Mid-40": SolidStateLidar(38.4, (-19.2, 19.2), 100_000, 120),
    "Mid-70": SolidStateLidar(70.4, (-35.2, 35.2), 100_000, 120),
    "Avia": SolidStateLidar(70.4, (-38.6, 38.6), 240_000, 120, lasers=6, min_return=3e-6),
    "Mid-360": SolidStateLidar(360, (-7, 52), 200_000, 70, lasers=4, min_return=6e-5),
}
