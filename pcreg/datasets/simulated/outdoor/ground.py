"""Open ground: its height at every place, and its intersections with rays.

It has a slope, long waves, roads with camber and kerbs, banks or ditches beside roads, and roughness off
the roads. Roads are arcs of circles, so that the distance to a road is a formula; NumPy evaluates it while
a scene is built, PyTorch for rays.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.solids import BUDGET

# Steps along a ray: first steps that cannot pass the ground on any slope, then those of the secant method
SAFE_STEPS, SECANT_STEPS = 14, 6
HIT_TOLERANCE = 0.02  # metres above or below the ground where a ray has hit it


@dataclass(frozen=True)
class Road:
    """An arc through (x, y), heading towards `heading` (radians) there; `curvature` (1/m) is to the left."""

    x: float = 0.0
    y: float = 0.0
    heading: float = 0.0
    curvature: float = 0.0
    half_width: float = 4.0  # metres, kerb to middle

    def at(self, station: np.ndarray, offset: np.ndarray = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, y and direction (radians) `station` metres along the road, `offset` metres to its left."""
        heading = self.heading + self.curvature * station
        half = self.curvature * station / 2
        chord = station * np.sinc(half / np.pi)
        x = self.x + chord * np.cos(self.heading + half) - offset * np.sin(heading)
        y = self.y + chord * np.sin(self.heading + half) + offset * np.cos(heading)
        return x, y, heading

    def aside(self, x, y):
        """Signed distance of x, y (arrays or tensors) from the middle of the road, positive to its left."""
        c, s = float(np.cos(self.heading)), float(np.sin(self.heading))
        along, left = c * (x - self.x) + s * (y - self.y), c * (y - self.y) - s * (x - self.x)
        k = self.curvature
        return (2 * left - k * (along**2 + left**2)) / (1 + ((1 - k * left) ** 2 + (k * along) ** 2) ** 0.5)


@dataclass(frozen=True)
class Ground:
    """Heights in metres. Waves are rows of (height, wave numbers in x and y in 1/m, phase)."""

    roads: tuple[Road, ...] = ()
    slope: tuple[float, float] = (0.0, 0.0)
    waves: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))
    kerb: float = 0.0  # height of everything that is not road
    camber: float = 0.0  # fall from the middle of a road to its side, per metre
    bank: tuple[float, float, float] = (1.0, 2.0, 0.0)  # from, to (metres off the road), height
    rough: np.ndarray = field(default_factory=lambda: np.empty((0, 4)))  # waves off the road alone

    def height(self, x: Tensor, y: Tensor) -> Tensor:
        """Heights at x, y, tensors of any shape."""
        z = _add_waves(self.slope[0] * x + self.slope[1] * y, self.waves, x, y)
        if not self.roads:
            return z
        asides = [road.aside(x, y).abs() for road in self.roads]
        inside = reduce(torch.minimum, asides)
        off = reduce(torch.minimum, [a - road.half_width for a, road in zip(asides, self.roads, strict=True)])
        if self.camber:
            z = z - self.camber * inside.clamp(max=max(road.half_width for road in self.roads))
        if self.kerb:
            z = z + self.kerb * (off * 20 + 0.5).clamp(0, 1)
        start, end, height = self.bank
        if height:
            s = ((off - start) / (end - start)).clamp(0, 1)
            z = z + height * s * s * (3 - 2 * s)
        if len(self.rough):
            z = z + _add_waves(0.0, self.rough, x, y) * (off - 0.3).clamp(0, 1)
        return z

    def heights(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights at x, y, NumPy arrays of any shape."""
        return self.height(torch.from_numpy(np.asarray(x)), torch.from_numpy(np.asarray(y))).numpy()

    @property
    def steepest(self) -> float:
        """Upper bound of the slope, without kerbs and roughness, which are low."""
        waves = np.abs(self.waves[:, 0]) * np.hypot(self.waves[:, 1], self.waves[:, 2])
        start, end, height = self.bank
        bank = 1.5 * abs(height) / (end - start) if self.roads else 0.0
        return float(np.hypot(*self.slope) + waves.sum() + bank + self.camber + 0.02)

    @torch.no_grad()
    def meet(self, origins: Tensor, directions: Tensor, far: float) -> tuple[Tensor, Tensor]:
        """First intersections of rays (G, R, 3) from origins (G, 1 or R, 3) with the ground.

        Distances (G, R), infinite beyond `far`, and |cos| of the angles to the normal (G, R).
        """
        groups = max(1, BUDGET[directions.device.type] // directions.shape[1])
        parts = zip(origins.split(groups), directions.split(groups), strict=True)
        t, cosine = zip(*(self._meet(*part, far) for part in parts), strict=True)
        return torch.cat(t), torch.cat(cosine)

    def _meet(self, origins: Tensor, directions: Tensor, far: float) -> tuple[Tensor, Tensor]:
        x, y, z = origins.unbind(-1)
        dx, dy, dz = directions.unbind(-1)

        def above(t: Tensor) -> Tensor:
            return torch.addcmul(z, t, dz) - self.height(torch.addcmul(x, t, dx), torch.addcmul(y, t, dy))

        # Upper bound of the rate at which a ray approaches the ground
        sooner = (self.steepest * torch.sqrt((1 - dz * dz).clamp(min=0)) - dz).clamp(min=0.02)
        t = torch.zeros_like(dz)
        for _ in range(SAFE_STEPS):
            before, gap_before = t, above(t)
            t = (t + gap_before / sooner).clamp(0, 2 * far)
        for _ in range(SECANT_STEPS):
            gap = above(t)
            change = gap_before - gap
            step = gap * (t - before) / torch.where(change.abs() < 1e-6, 1e-6, change)
            before, gap_before = t, gap
            t = t + torch.minimum(torch.maximum(step, -0.2 * t), 0.5 * t)
            t = t.clamp(0, 2 * far)
        px, py = torch.addcmul(x, t, dx), torch.addcmul(y, t, dy)
        h = self.height(px, py)
        small = 0.05
        sx = (self.height(px + small, py) - h) / small
        sy = (self.height(px, py + small) - h) / small
        fall = sx * dx + sy * dy - dz  # rate at which the ray approaches the ground
        gap = torch.addcmul(z, t, dz) - h
        met = (gap.abs() < HIT_TOLERANCE + 0.001 * t) & (t < far) & (fall > 0)
        cosine = fall.abs() / torch.sqrt(1 + sx * sx + sy * sy)
        return torch.where(met, t, torch.inf), cosine


def _add_waves(z: Tensor | float, waves: np.ndarray, x: Tensor, y: Tensor) -> Tensor:
    for height, kx, ky, phase in waves.tolist():
        z = z + height * torch.sin(kx * x + ky * y + phase)
    return z
