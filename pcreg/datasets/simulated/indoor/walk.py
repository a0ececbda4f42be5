"""The path of a depth camera that a person carries through a room.

Camera frame: x right, y down, z forward. The path goes from station to station; at each the camera points at
something one to three metres away. Steps and rotations per fragment follow those of recorded sequences.
"""

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter1d

from pcreg.datasets.simulated.indoor.piece import extents
from pcreg.datasets.simulated.indoor.scene import Scene

CELL = 0.1  # metres, of the grid of free places
CLEAR = 0.3  # metres from the camera to things at its height
SAMPLES = 16  # of the path per fragment, before smoothing
SPAN = 0.6  # of the way from fragment to fragment; the images in between are not used


def camera_path(rng: np.random.Generator, scene: Scene, fragments: int, frames: int) -> np.ndarray:
    """T_world_camera (fragments, frames, 4, 4): the frames of a fragment are evenly spaced."""
    step, turn = rng.uniform(0.35, 1.0), rng.uniform(20, 75)  # metres and degrees per fragment
    eyes, targets = _stations(rng, scene, fragments)
    gaze = targets - eyes
    yaw = np.unwrap(np.arctan2(gaze[:, 1], gaze[:, 0]))
    pitch = np.arctan2(gaze[:, 2], np.hypot(gaze[:, 0], gaze[:, 1]))
    station = np.c_[eyes, yaw, np.clip(pitch, np.radians(-50), np.radians(15))]
    moved = np.linalg.norm(np.diff(eyes, axis=0), axis=1) / step
    turned = np.abs(np.diff(yaw)) / np.radians(turn)
    when = np.r_[0, np.cumsum(np.maximum(np.maximum(moved, turned), 0.5))]
    time = np.arange(fragments * SAMPLES) / SAMPLES
    smooth = np.stack([np.interp(time, when, column) for column in station.T], 1)
    smooth = gaussian_filter1d(smooth, 0.4 * SAMPLES, axis=0, mode="nearest")
    # The hand: slow sway of place and angles, and a roll.
    sway = gaussian_filter1d(rng.standard_normal((len(time), 6)), 0.35 * SAMPLES, axis=0)
    sway /= sway.std(0)
    smooth += sway[:, :5] * [0.03, 0.03, 0.03, np.radians(3), np.radians(4)]
    roll = np.radians(rng.normal(0, 3) + rng.uniform(1, 6) * sway[:, 5])
    poses = _looking(smooth[:, :3], smooth[:, 3], smooth[:, 4], roll)
    within = np.linspace(0, SPAN * SAMPLES, frames).round().astype(int)
    at = np.arange(fragments)[:, None] * SAMPLES + within
    return poses[at]


def _stations(rng: np.random.Generator, scene: Scene, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Camera positions and target points, (count, 3) each."""
    places, blocked = _free_places(scene)
    low, high = extents(scene.solids)
    middle = (low + high) / 2
    inside = np.zeros(len(middle), bool)
    for x0, y0, x1, y1 in scene.floors:
        inside |= (middle[:, 0] > x0) & (middle[:, 0] < x1) & (middle[:, 1] > y0) & (middle[:, 1] < y1)
    middle = middle[inside & (middle[:, 2] > 0.05) & (middle[:, 2] < 2.0)]
    targets = middle[rng.integers(len(middle), size=count)] + rng.normal(0, 0.45, (count, 3))
    targets[:, 2] = np.clip(targets[:, 2], 0.3, 1.8)
    away = np.linalg.norm(places[None] - targets[:, None, :2], axis=2)
    wanted = rng.uniform(0.9, 3.0, count)
    cost = np.abs(away - wanted[:, None]) + rng.gumbel(0, 0.15, away.shape) + blocked
    eyes = np.c_[places[cost.argmin(1)], rng.normal(rng.uniform(1.15, 1.6), 0.08, count)]
    # The next station is near the last in place and in heading, most times.
    heading = np.arctan2(*(targets - eyes)[:, 1::-1].T)
    swing = np.abs((heading - heading[:, None] + np.pi) % (2 * np.pi) - np.pi)
    far = np.linalg.norm(eyes - eyes[:, None], axis=2) + 0.8 * swing
    order, left = [0], list(range(1, count))
    while left:
        missed = far[order[-1], left] + rng.gumbel(0, 0.4, len(left))
        order.append(left.pop(int(missed.argmin())))
    return eyes[order], targets[order]


def _free_places(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Grid points (N, 2) on the floors, and their costs (N,), high near tall things."""
    low, high = extents(scene.solids)
    tall = (high[:, 2] > 0.95) & (low[:, 2] < 1.9)
    corner, end = scene.floors[:, :2].min(0), scene.floors[:, 2:].max(0)
    shape = np.ceil((end - corner) / CELL).astype(int) + 1
    free = np.zeros(shape, bool)
    for x0, y0, x1, y1 in _cells(scene.floors[:, :2], scene.floors[:, 2:], corner):
        free[x0 : x1 + 1, y0 : y1 + 1] = True
    for x0, y0, x1, y1 in _cells(low[tall, :2], high[tall, :2], corner):
        free[x0 : x1 + 1, y0 : y1 + 1] = False
    free[[0, -1]], free[:, [0, -1]] = False, False
    distance = distance_transform_edt(free) * CELL
    clear = min(CLEAR, 0.9 * distance.max())
    at = np.argwhere(distance > 0)
    blocked = np.maximum(clear - distance[tuple(at.T)], 0) * 100
    return corner + at * CELL, blocked


def _cells(low: np.ndarray, high: np.ndarray, corner: np.ndarray) -> list[list[int]]:
    return np.c_[(low - corner) / CELL, (high - corner) / CELL].round().astype(int).clip(0).tolist()


def _looking(eye: np.ndarray, yaw: np.ndarray, pitch: np.ndarray, roll: np.ndarray) -> np.ndarray:
    """T_world_camera (F, 4, 4) of cameras at eye (F, 3), angles in radians."""
    forward = np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], 1)
    right = np.stack([np.sin(yaw), -np.cos(yaw), np.zeros_like(yaw)], 1)
    down = np.cross(forward, right)
    c, s = np.cos(roll)[:, None], np.sin(roll)[:, None]
    T = np.zeros((len(eye), 4, 4))
    T[:, :3, 0], T[:, :3, 1] = c * right + s * down, c * down - s * right
    T[:, :3, 2], T[:, :3, 3], T[:, 3, 3] = forward, eye, 1
    return T
