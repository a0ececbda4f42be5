"""Scans of a simulated street: ground, two walls and a dozen boxes between them, seen by a turning LiDAR."""

import numpy as np

from pcreg.geometry.se3 import rotation_about, se3

HULL = np.array([[-30.0, -9, 0], [40, 11, 25]])  # lower and upper corner, seen from inside
LOW = np.random.default_rng(5).uniform([-20, -8, 0], [35, 8, 0], (14, 3))
LOW = LOW[np.abs(LOW[:, 1]) > 3]  # the way is free
HIGH = LOW + np.random.default_rng(6).uniform(1, 4, LOW.shape)


def street_pose(n: int) -> np.ndarray:
    """T_world_sensor (4, 4) of scan n: a metre further on than scan n - 1, and turned by 4 degrees."""
    return se3(rotation_about([0, 0, 1], 4.0 * n), np.array([n, 0.5 * np.sin(0.4 * n), 1.8]))


def street_scan(pose: np.ndarray, seed: int, rays: int = 12_000) -> np.ndarray:
    """The points (N, 3) float64 seen from `pose` (4, 4), in the sensor's frame; noise of 2 cm."""
    rng = np.random.default_rng(seed)
    azimuth, elevation = rng.uniform(-np.pi, np.pi, rays), np.radians(rng.uniform(-25, 15, rays))
    level = np.cos(elevation)
    rays = np.c_[level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)]
    ways = rays @ pose[:3, :3].T
    distance = _crossings(pose[:3, 3], ways, *HULL)[1]  # where the hull is left
    for low, high in zip(LOW, HIGH, strict=True):
        enter, leave = _crossings(pose[:3, 3], ways, low, high)
        distance = np.where((enter > 0) & (enter < leave), np.minimum(distance, enter), distance)
    return rays * (distance + rng.normal(0, 0.02, len(rays)))[:, None]


def _crossings(origin, ways, low, high):
    """Distances along rays (N, 3) at which a box is entered and left, (N,) each; reversed if missed."""
    one, other = (low - origin) / ways, (high - origin) / ways
    return np.minimum(one, other).max(1), np.maximum(one, other).min(1)
