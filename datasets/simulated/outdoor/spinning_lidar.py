"""Spinning LiDARs: their beams, and a drive's sweeps cast into a scene all at once.

A sensor's frame: x forward, y left, z up, the sensor at the origin; a sweep's points are in the frame
that the sensor has in its middle. Angles of the models from their manuals (Velodyne HDL-64E S3,
HDL-32E, VLP-16, VLP-32C; Hesai Pandar64; Ouster OS0 and OS1), in degrees, elevation upwards.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.outdoor.drive import Drive
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.datasets.simulated.outdoor.things import Material, Things
from pcreg.datasets.simulated.raycast import cast
from pcreg.datasets.simulated.solids import Solids

BLOCK = 16  # columns that are cast together
# Ranges by Material, drawn for each solid: the reflected fraction, the fraction of rays lost, and the
# height of the relief in metres
ALBEDO = torch.tensor([[0.08, 0.8], [0.03, 0.3], [0.02, 0.3], [0.2, 0.6]])
LOST = torch.tensor([[0.0, 0.01], [0.0, 1.2], [0.0, 0.3], [0.0, 0.04]])
RELIEF = torch.tensor([[0.0, 0.07], [0.0, 0.01], [0.0, 0.02], [0.0, 0.0]])
GROUND = torch.tensor([[0.06, 0.35], [0.0, 0.006], [0.0, 0.015]])  # the same three of the ground
WAVES = 6  # plane waves that make the relief
LEAF_DEPTH = 0.22  # metres that a ray goes on between leaves, on average
LEAF_GAPS = 0.15  # fraction of the rays that pass a crown


@dataclass(frozen=True)
class Lidar:
    """A model: the elevation of each beam (degrees), what it sees and how exactly."""

    elevation: tuple[float, ...]
    columns: int  # firings per turn, a multiple of 2 BLOCK
    far: float  # metres
    near: float = 1.0
    noise: float = 0.015  # metres, sigma of the range
    min_return: float = 1.5e-6  # reflected fraction times cosine over squared range (1/m^2)

    def every_column(self, step: int) -> "Lidar":
        """With every `step`-th column alone."""
        return replace(self, columns=self.columns // step)

    def every_beam(self, step: int) -> "Lidar":
        """With every `step`-th beam alone."""
        return replace(self, elevation=self.elevation[::step])

    @property
    def rows(self) -> int:
        """Neighbouring beams that are cast together: a power of two that span some degrees."""
        span = abs(self.elevation[0] - self.elevation[-1]) / len(self.elevation)
        return min(16, 2 ** int(np.log2(max(1.0, 10 / span))), len(self.elevation))


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
    "HDL-64E": Lidar((*_even(-8.33, 2, 32), *_even(-24.33, -8.83, 32)), 2048, 80, 1.0, 0.02, 1.5e-6),
    "HDL-32E": Lidar(_even(-30.67, 10.67, 32), 2176, 80, 1.0, 0.02, 3e-6),
    "VLP-16": Lidar(_even(-15, 15, 16), 1792, 90, 0.8, 0.02, 3e-6),
    "VLP-32C": Lidar(_VLP32C, 1792, 120, 1.0, 0.02, 1.5e-6),
    "Pandar64": Lidar(_PANDAR64, 1792, 120, 0.5, 0.015, 1e-6),
    "OS1-64": Lidar(_even(-22.5, 22.5, 64), 1024, 90, 0.6, 0.02, 4e-6),
    "OS1-128": Lidar(_even(-22.5, 22.5, 128), 1024, 90, 0.6, 0.02, 3e-6),
    "OS0-32": Lidar(_even(-45, 45, 32), 2048, 60, 0.4, 0.012, 5e-5),
    "OS0-64": Lidar(_even(-45, 45, 64), 2048, 60, 0.4, 0.012, 5e-5),
    "OS0-128": Lidar(_even(-45, 45, 128), 1024, 60, 0.4, 0.012, 5e-5),
}


@torch.no_grad()
def sweeps(
    scene: Scene, lidar: Lidar, drive: Drive, body: np.ndarray, generator: torch.Generator
) -> list[Tensor]:
    """Points (N, 3) float32 of each sweep, on the device of `generator`.

    `body` (2, 3): two corners of a box in the sensor's frame, a car's roof or a person, that hides what
    is behind it.
    """
    device = generator.device
    S = len(drive.seconds)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device)

    # Groups of rays: rows of neighbouring beams times columns; the sensor moves from group to group.
    rows, blocks = lidar.rows, lidar.columns // BLOCK
    shape = S, len(lidar.elevation) // rows, blocks, rows, BLOCK

    def per_beam(v: Tensor) -> Tensor:
        return v.reshape(shape[1], 1, rows, 1)

    beams = torch.tensor(lidar.elevation, dtype=torch.float32, device=device)
    elevation = per_beam(torch.deg2rad(beams + 0.05 * normal(len(beams))))
    column = torch.arange(lidar.columns, device=device).reshape(blocks, 1, BLOCK)
    azimuth = -2 * torch.pi * (column + uniform(S, 1, 1, 1, 1)) / lidar.columns  # clockwise
    azimuth = azimuth + per_beam(torch.deg2rad(normal(len(beams))))
    level = elevation.cos()
    ray = torch.stack([level * azimuth.cos(), level * azimuth.sin(), elevation.sin().expand(shape)], -1)

    turn = (torch.arange(blocks, device=device) + 0.5) / blocks - 0.5  # of a turn, from its middle
    pose = torch.from_numpy(drive.T_world_sensor).float().to(device)[:, None]
    velocity = torch.from_numpy(drive.velocity).float().to(device)
    spin = torch.from_numpy(drive.spin).float().to(device)
    R, t = _moved(turn, velocity, spin)
    directions = _turned(pose[..., :3, :3] @ R, ray)
    origins = (pose[..., :3, :3] @ t[..., None])[..., 0] + pose[..., :3, 3]  # (S, blocks, 3)
    origins = origins[:, None].expand(*shape[:3], 3)

    distance, cosine, albedo, loss = (
        v.reshape(shape)
        for v in _first(
            scene, lidar, drive, origins.reshape(-1, 1, 3), directions.reshape(-1, rows * BLOCK, 3), generator
        )
    )
    strength = albedo * cosine / distance.square() * torch.exp(0.4 * normal(*shape))
    seen = (
        (distance > lidar.near)
        & (distance < lidar.far)
        & (strength > lidar.min_return)
        & (uniform(*shape) >= loss)
        & ~_hidden(ray, torch.from_numpy(body).float().to(device))
    )
    bias = per_beam(0.6 * lidar.noise * normal(len(beams)))
    measured = torch.where(seen, distance, 0) + bias + lidar.noise * normal(*shape)
    R, t = _moved((1 - drive.distortion) * turn, velocity, spin)
    points = _turned(R, ray * measured[..., None]) + t[:, None, :, None, None]
    return list(points[seen].split(seen.flatten(1).sum(1).tolist()))


def _hidden(ray: Tensor, body: Tensor) -> Tensor:
    """Whether rays (..., 3) from the sensor meet the box between two corners (2, 3)."""
    corners = body / torch.where(ray.abs() < 1e-9, 1e-9, ray)[..., None, :]  # (..., 2, 3)
    enter, leave = corners.amin(-2).amax(-1), corners.amax(-2).amin(-1)
    return enter.clamp(min=0) < leave


def _turned(R: Tensor, v: Tensor) -> Tensor:
    """v (S, ., blocks, rows, BLOCK, 3) turned by R (S, blocks, 3, 3)."""
    flat = v.flatten(3, 4)  # (S, ., blocks, rays, 3)
    return (flat @ R[:, None].mT).reshape(v.shape)


def _first(
    scene: Scene, lidar: Lidar, drive: Drive, origins: Tensor, directions: Tensor, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """What rays (G, R, 3) meet first: distance, |cos| to the normal, reflected fraction, rate of loss."""
    device = directions.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    distance, cosine = scene.ground.meet(origins, directions, lidar.far)
    things, sweep = _at_all_times(scene, drive)
    material = torch.from_numpy(things.material).to(device)
    standing = torch.from_numpy(sweep < 0).to(device)
    albedo, loss, relief = (
        torch.lerp(*bounds.to(device)[material].unbind(1), uniform(len(things)))
        for bounds in (ALBEDO, LOST, RELIEF)
    )
    relief = relief.square() / RELIEF.max() * standing  # few surfaces are very uneven
    surface = torch.stack([albedo, loss, relief], 1)
    met = torch.lerp(*GROUND.to(device).unbind(1), uniform(3)).expand(*distance.shape, 3)
    leafy = things.material == Material.LEAVES
    group_sweep = torch.arange(len(origins), device=device) // (len(origins) // len(drive.seconds))
    for chosen in (~leafy, leafy):
        index = np.flatnonzero(chosen)
        if not len(index):
            continue
        at = torch.from_numpy(sweep[index]).to(device)
        present = (at < 0) | (at == group_sweep[:, None])
        some = Solids(things.solids.shape[index], things.solids.T_world_unit[index])
        hits = cast(some, origins, directions, distance.amax(1).clamp(max=lidar.far), present)
        t, cos = hits.distance, hits.cosine
        if chosen is leafy:
            inside = torch.empty_like(t).exponential_(generator=generator) * LEAF_DEPTH
            t = torch.where(uniform(*t.shape) < LEAF_GAPS, torch.inf, t + inside)
            cos = cos.clamp(min=0.3)
        closer = t < distance
        which = torch.from_numpy(index).to(device)[hits.solid.clamp(min=0)]
        distance = torch.where(closer, t, distance)
        cosine = torch.where(closer, cos, cosine)
        met = torch.where(closer[..., None], surface[which], met)
    albedo, loss, relief = met.unbind(-1)
    places = torch.addcmul(origins, distance.nan_to_num(posinf=0)[..., None], directions)
    uneven = scene.relief * relief * _waves(places, generator)
    distance = distance + uneven / cosine.clamp(min=0.2)
    return distance, cosine, albedo, loss


def _waves(places: Tensor, generator: torch.Generator) -> Tensor:
    """A random smooth function of places (G, R, 3), mostly between -1 and 1: the same for all sweeps."""
    length = 0.4 * 10 ** torch.rand(WAVES, generator=generator, device=places.device)  # 0.4 to 4 m
    k = torch.randn(WAVES, 3, generator=generator, device=places.device)
    k = torch.nn.functional.normalize(k, dim=-1) * 2 * torch.pi / length[:, None]
    phase = 2 * torch.pi * torch.rand(WAVES, generator=generator, device=places.device)
    total = torch.zeros_like(places[..., 0])
    for (kx, ky, kz), start in zip(k.tolist(), phase.tolist(), strict=True):
        total += torch.sin(kx * places[..., 0] + ky * places[..., 1] + kz * places[..., 2] + start)
    return total * (2 / WAVES) ** 0.5


def _at_all_times(scene: Scene, drive: Drive) -> tuple[Things, np.ndarray]:
    """Everything in the scene, what moves once for each sweep, and (P,) the sweep it is there for or -1."""
    parts, sweeps = [scene.things], [np.full(len(scene.things), -1)]
    for mover in scene.movers:
        T = mover.poses(scene.ground, drive.seconds)
        # Nothing drives into the sensor.
        away = np.linalg.norm(T[:, :2, 3] - drive.T_world_sensor[:, :2, 3], axis=1) > mover.length / 2 + 1
        parts.append(mover.things.copies(T[away]))
        sweeps.append(np.repeat(np.flatnonzero(away), len(mover.things)))
    return Things.join(*parts), np.concatenate(sweeps)


def _moved(turn: Tensor, velocity: Tensor, spin: Tensor) -> tuple[Tensor, Tensor]:
    """R (S, A, 3, 3) and t (S, A, 3) of the sensor at parts (A,) of a turn, in its frame of the middle."""
    w = turn[:, None] * spin[:, None]  # (S, A, 3)
    nothing = torch.zeros_like(w[..., 0])
    x, y, z = w.unbind(-1)
    cross = torch.stack([nothing, -z, y, z, nothing, -x, -y, x, nothing], -1).unflatten(-1, (3, 3))
    return torch.linalg.matrix_exp(cross), turn[:, None] * velocity[:, None]
