"""Simulated LiDAR measurements: all sweeps of a drive are cast at once.

Sensor frame: x forward, y left, z up, the sensor at the origin. The points of a sweep are in the frame
of the sensor in the middle of the sweep.
"""

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.draws import normal, uniform
from pcreg.datasets.simulated.outdoor.drive import Drive
from pcreg.datasets.simulated.outdoor.lidar_models import Lidar
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.datasets.simulated.solids import Material, Solids, cast, on_device

# Bounds by Material, between which each solid's value is drawn: the reflected fraction, the fraction of
# rays lost, and the height of the relief in metres
ALBEDO = torch.tensor([[0.08, 0.8], [0.03, 0.3], [0.02, 0.3], [0.2, 0.6]])
LOST = torch.tensor([[0.0, 0.01], [0.0, 1.2], [0.0, 0.3], [0.0, 0.04]])
RELIEF = torch.tensor([[0.0, 0.07], [0.0, 0.01], [0.0, 0.02], [0.0, 0.0]])
GROUND = torch.tensor([[0.06, 0.35], [0.0, 0.006], [0.0, 0.015]])  # the same three, for the ground
WAVES = 6  # plane waves that make the relief
LEAF_DEPTH = 0.22  # metres that a ray goes on between leaves, on average
LEAF_GAPS = 0.15  # fraction of the rays that pass a crown


@torch.no_grad()
def sweeps(
    scene: Scene, lidar: Lidar, drive: Drive, body: np.ndarray, generator: torch.Generator
) -> list[Tensor]:
    """Points (N, 3) float32 of each sweep, on the device of `generator`.

    `body` (2, 3) are corners of a box in the sensor's frame, a roof or a person, which occludes the scene.
    """
    device = generator.device
    ray, moment = lidar.rays(len(drive.seconds), generator)
    shape = ray.shape[:-1]  # (S, G, R)
    part = (torch.arange(lidar.moments, device=device) + 0.5) / lidar.moments - 0.5  # of a sweep
    pose = on_device(drive.T_world_sensor, device)[:, None]
    velocity, spin = on_device(drive.velocity, device), on_device(drive.spin, device)
    R, t = _moved(lidar.turns * part, velocity, spin)
    directions = ray @ (pose[..., :3, :3] @ R)[:, moment].mT
    origins = (pose[..., :3, :3] @ t[..., None])[..., 0] + pose[..., :3, 3]  # (S, moments, 3)
    groups = origins[:, moment].reshape(-1, 1, 3), directions.reshape(-1, shape[-1], 3)
    first = _first(scene, lidar, drive, *groups, generator)
    distance, cosine, albedo, loss = (values.reshape(shape) for values in first)
    strength = albedo * cosine / distance.square() * torch.exp(0.4 * normal(generator, *shape))
    seen = (distance > lidar.near) & (distance < lidar.far) & (strength > lidar.min_return)
    seen &= (uniform(generator, *shape) >= loss) & ~_hidden(ray, on_device(body, device))
    measured = torch.where(seen, distance, 0) + lidar.range_errors(generator)
    measured = measured + lidar.noise * normal(generator, *shape)
    # De-skewing undoes the motion within a sweep, except for the fraction `distortion` of one turn's motion.
    R, t = _moved((lidar.turns - drive.distortion) * part, velocity, spin)
    points = (ray * measured[..., None]) @ R[:, moment].mT + t[:, moment, None]
    return list(points[seen].split(seen.flatten(1).sum(1).tolist()))


def _hidden(ray: Tensor, body: Tensor) -> Tensor:
    """Mask (...) of rays (..., 3) from the sensor that meet the box between two corners (2, 3)."""
    corners = body / torch.where(ray.abs() < 1e-9, 1e-9, ray)[..., None, :]  # (..., 2, 3)
    enter, leave = corners.amin(-2).amax(-1), corners.amax(-2).amin(-1)
    return enter.clamp(min=0) < leave


def _first(
    scene: Scene, lidar: Lidar, drive: Drive, origins: Tensor, directions: Tensor, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Distance, |cos|, reflected fraction and loss rate (G, R) at first hits."""
    device = directions.device
    distance, cosine = scene.ground.meet(origins, directions, lidar.far)
    solids, sweep = _at_all_times(scene, drive)
    material = on_device(solids.material, device)
    standing = on_device(sweep < 0, device)
    albedo, loss, relief = (
        torch.lerp(*bounds.to(device)[material].unbind(1), uniform(generator, len(solids)))
        for bounds in (ALBEDO, LOST, RELIEF)
    )
    relief = relief.square() / RELIEF.max() * standing  # few surfaces are very uneven
    surface = torch.stack([albedo, loss, relief], 1)
    met = torch.lerp(*GROUND.to(device).unbind(1), uniform(generator, 3)).expand(*distance.shape, 3)
    leafy = solids.material == Material.LEAVES
    group_sweep = torch.arange(len(origins), device=device) // (len(origins) // len(drive.seconds))
    for chosen in (~leafy, leafy):
        index = np.flatnonzero(chosen)
        if not len(index):
            continue
        at = on_device(sweep[index], device)
        present = (at < 0) | (at == group_sweep[:, None])
        some, far = solids.where(chosen), distance.amax(1).clamp(max=lidar.far)
        hits = cast(some, origins, directions, far, present)
        t, cos = hits.distance, hits.cosine
        if chosen is leafy:
            inside = torch.empty_like(t).exponential_(generator=generator) * LEAF_DEPTH
            t = torch.where(uniform(generator, *t.shape) < LEAF_GAPS, torch.inf, t + inside)
            cos = cos.clamp(min=0.3)
        closer = t < distance
        which = on_device(index, device)[hits.solid.clamp(min=0)]
        distance = torch.where(closer, t, distance)
        cosine = torch.where(closer, cos, cosine)
        met = torch.where(closer[..., None], surface[which], met)
    albedo, loss, relief = met.unbind(-1)
    places = torch.addcmul(origins, distance.nan_to_num(posinf=0)[..., None], directions)
    uneven = scene.relief * relief * _waves(places, generator)
    distance = distance + uneven / cosine.clamp(min=0.2)
    return distance, cosine, albedo, loss


def _waves(places: Tensor, generator: torch.Generator) -> Tensor:
    """Random smooth function of places (G, R, 3), mostly between -1 and 1, the same for all sweeps."""
    length = 0.4 * 10 ** uniform(generator, WAVES)  # 0.4 to 4 m
    k = normal(generator, WAVES, 3)
    k = torch.nn.functional.normalize(k, dim=-1) * 2 * torch.pi / length[:, None]
    phase = 2 * torch.pi * uniform(generator, WAVES)
    total = torch.zeros_like(places[..., 0])
    for (kx, ky, kz), start in zip(k.tolist(), phase.tolist(), strict=True):
        total += torch.sin(kx * places[..., 0] + ky * places[..., 1] + kz * places[..., 2] + start)
    return total * (2 / WAVES) ** 0.5


def _at_all_times(scene: Scene, drive: Drive) -> tuple[Solids, np.ndarray]:
    """All solids, moving ones once per sweep, and their sweeps (P,), -1 if static."""
    parts, sweeps = [scene.solids], [np.full(len(scene.solids), -1)]
    for mover in scene.movers:
        T = mover.poses(scene.ground, drive.seconds)
        # A mover is left out of a sweep in which any of its solids could be within two metres of the sensor.
        reach = np.abs(mover.solids.T_world_unit[:, 0, 3]).max() + 2
        away = np.linalg.norm(T[:, :2, 3] - drive.T_world_sensor[:, :2, 3], axis=1) > reach
        parts.append(mover.solids.copies(T[away]))
        sweeps.append(np.repeat(np.flatnonzero(away), len(mover.solids)))
    return Solids.join(*parts), np.concatenate(sweeps)


def _moved(turn: Tensor, velocity: Tensor, spin: Tensor) -> tuple[Tensor, Tensor]:
    """R (S, A, 3, 3), t (S, A, 3) from fractions (A,) of a turn to the sweep's middle."""
    w = turn[:, None] * spin[:, None]  # (S, A, 3)
    nothing = torch.zeros_like(w[..., 0])
    x, y, z = w.unbind(-1)
    cross = torch.stack([nothing, -z, y, z, nothing, -x, -y, x, nothing], -1).unflatten(-1, (3, 3))
    return torch.linalg.matrix_exp(cross), turn[:, None] * velocity[:, None]
