"""Paths of a sensor through a scene, on wheels or in a hand."""

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from pcreg.datasets.simulated.outdoor.ground import Road
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.geometry.se3 import rotation_about, se3


class Carrier(Enum):
    """A carrier of a sensor, by height (m, from and to), speed (m/s) and sway (degrees)."""

    ROOF = (1.5, 2.2), (2.0, 12.0), (0.1, 1.0)  # of a car
    ROBOT = (0.4, 1.3), (0.5, 2.5), (0.3, 4.0)
    HAND = (0.7, 1.9), (0.5, 1.8), (3.0, 25.0)


@dataclass(frozen=True)
class Drive:
    """Pose, time and motion of a sensor in the middle of each of S sweeps."""

    T_world_sensor: np.ndarray  # (S, 4, 4)
    seconds: np.ndarray  # (S,)
    velocity: np.ndarray  # (S, 3) metres per turn, in the sensor's frame
    spin: np.ndarray  # (S, 3) radians per turn, a rotation vector in the sensor's frame
    distortion: float = 0.0  # fraction of the motion in a turn that de-skewing leaves in the points


def drive_through(rng: np.random.Generator, scene: Scene, carrier: Carrier) -> Drive:
    """Draw 10 to 20 sweeps on one path through a scene."""
    in_hand = carrier is Carrier.HAND
    height, speed, sway = (rng.uniform(*bounds) for bounds in carrier.value)
    if scene.kind == "highway":
        speed *= 2
    count = int(rng.integers(10, 21))
    x, y, yaw = _way(rng, scene, count, in_hand)
    z = scene.ground.heights(x, y) + height + rng.normal(0, 0.05 if in_hand else 0.01, count)
    up = _up(scene, x, y)
    mount = rotation_about(rng.standard_normal(3), abs(rng.normal(0, 1.5)))
    if rng.random() < 0.2:  # mounted at a random yaw
        mount = mount @ rotation_about((0, 0, 1), rng.uniform(0, 360))
    poses = []
    for n in range(count):
        upright = _towards(up[n]) @ rotation_about((0, 0, 1), np.degrees(yaw[n]))
        swaying = rotation_about(rng.standard_normal(3), rng.normal(0, sway))
        poses.append(se3(upright @ swaying @ mount, np.array([x[n], y[n], z[n]])))
    T = np.stack(poses)
    gone = np.linalg.norm(np.diff(np.stack([x, y], 1), axis=0), axis=1)
    seconds = np.concatenate([[0.0], np.cumsum(gone)]) / speed
    forward = np.stack([np.cos(yaw), np.sin(yaw), np.zeros(count)], 1)
    velocity = 0.1 * speed * (T[:, :3, :3].transpose(0, 2, 1) @ forward[..., None])[..., 0]
    spin = rng.normal(0, np.radians(6 if in_hand else 0.6), (count, 3))
    spin = spin * ([1, 1, 1] if in_hand else [0.3, 0.3, 3])
    distortion = rng.choice([0.0, rng.uniform(0, 0.15), rng.uniform(0, 0.5), 1.0], p=[0.5, 0.25, 0.15, 0.1])
    return Drive(T, seconds, velocity, spin, float(distortion))


def _way(rng: np.random.Generator, scene: Scene, count: int, in_hand: bool) -> tuple[np.ndarray, ...]:
    """Places x, y and headings (count,): on the main road, perhaps another, or back."""
    main = scene.ways[0]
    back = count if rng.random() < 0.6 else int(rng.integers((count + 1) // 2, count))
    # Mostly far enough for pairs that have little in common.
    length = min(rng.uniform(6, 40) if in_hand else rng.uniform(20, 75), 1.8 * scene.radius)
    ahead = np.cumsum(rng.uniform(0.5, 1.5, back))
    ahead *= length / ahead[-1]
    side = rng.choice([-1.0, 1.0])
    others = [(other, _station(main, other)) for other in scene.ways[1:]]
    others = [(other, station) for other, station in others if abs(station) < 0.8 * scene.radius]
    if others and rng.random() < 0.4:
        turning = int(rng.integers(2, back))
        other, crossing = others[int(rng.integers(len(others)))]
        ahead = (ahead - ahead[turning]).clip(-scene.radius, scene.radius)
        first = _along(main, crossing + side * ahead[:turning], _lane(rng, main, side), side < 0)
        bend = rng.choice([-1.0, 1.0])
        rest = _along(other, bend * ahead[turning:], _lane(rng, other, bend), bend < 0)
        places = np.concatenate([first, rest])
    else:
        start = side * (-length / 2 + rng.uniform(-0.5, 0.5) * (1.9 * scene.radius - length))
        places = _along(main, start + side * ahead, _lane(rng, main, side), side < 0)
    if back < count:  # back on the same path, a lane aside
        again = np.sort(rng.choice(back, count - back, replace=False))[::-1]
        lane = rng.uniform(0.5, min(3.0, main.half_width))
        x, y, yaw = places[again].T
        shift = rng.normal(0, 0.5, len(again))
        x = x - lane * np.sin(yaw) + shift * np.cos(yaw)
        y = y + lane * np.cos(yaw) + shift * np.sin(yaw)
        places = np.concatenate([places, np.stack([x, y, yaw + np.pi], 1)])
    x, y, yaw = places.T
    if in_hand and rng.random() < 0.6:
        yaw = yaw + rng.uniform(-np.pi, np.pi, count)
    return x, y, yaw + rng.normal(0, 0.05, count)


def _along(road: Road, station: np.ndarray, offset: float, backwards: bool) -> np.ndarray:
    x, y, yaw = road.at(station, offset)
    return np.stack([x, y, yaw + np.pi * backwards], 1)


def _lane(rng: np.random.Generator, road: Road, side: float) -> float:
    """Offset from the middle of a road, mostly to the right."""
    return -side * rng.uniform(-0.2, 0.9) * max(0.3, road.half_width - 2.8)


def _station(road: Road, other: Road) -> float:
    """The station on a road at which another one begins."""
    stations = np.linspace(-90, 90, 1801)
    x, y, _ = road.at(stations)
    return float(stations[np.hypot(x - other.x, y - other.y).argmin()])


def cleared(scene: Scene, places: np.ndarray) -> Scene:
    """The scene without solids whose boxes are nearer than about 0.8 m to a sensor at places (N, 3)."""
    angle = np.arange(0, 2 * np.pi, np.pi / 4)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    offsets = np.concatenate([[[0, 0, 0]], *(r * ring + [0, 0, z] for r in (0.4, 0.8) for z in (0.0, -0.4))])
    at = (places[:, None] + offsets).reshape(-1, 3)
    T = scene.solids.T_world_unit
    # More than half of a solid's diagonal, even if it leans.
    bound = np.linalg.norm(T[:, :3, :3], axis=(1, 2)) * 1.5 + 1.0
    away = np.linalg.norm(T[:, None, :3, 3] - places, axis=2).min(1)
    near = np.flatnonzero(away < bound)
    T_unit_world = np.linalg.inv(T[near])[:, :3]
    local = T_unit_world[..., :3] @ at.T + T_unit_world[..., 3:]
    free = np.ones(len(T), bool)
    free[near] = ~(np.abs(local) < 1).all(1).any(1)
    return replace(scene, solids=scene.solids.where(free))


def _up(scene: Scene, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Normals (N, 3) of the ground at x, y (N,), from heights 1.2 m to either side."""
    h = scene.ground.heights
    sx, sy = h(x + 1.2, y) - h(x - 1.2, y), h(x, y + 1.2) - h(x, y - 1.2)
    up = np.stack([-sx / 2.4, -sy / 2.4, np.ones(len(x))], 1)
    return up / np.linalg.norm(up, axis=1, keepdims=True)


def _towards(up: np.ndarray) -> np.ndarray:
    """The smallest rotation (3, 3) that takes z to `up`."""
    axis = np.cross([0, 0, 1], up)
    sine = np.linalg.norm(axis)
    return np.eye(3) if sine < 1e-9 else rotation_about(axis, np.degrees(np.arcsin(min(1.0, sine))))
