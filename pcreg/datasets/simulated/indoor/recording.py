"""Recordings of procedural rooms: a scene, a walk through it with a depth camera, and its fragments.

Camera frame: x right, y down, z forward. The path goes from station to station; at each the camera points at
something one to three metres away. Steps and rotations per fragment follow those of recorded sequences.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt, gaussian_filter1d
from torch import Tensor

from pcreg.datasets.simulated.draws import Device, log_uniform, random_of
from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera, Fusion
from pcreg.datasets.simulated.indoor.piece import extents
from pcreg.datasets.simulated.indoor.scene import Scene, indoor_scene
from pcreg.datasets.simulated.recorded import Recording
from pcreg.datasets.simulated.solids import on_device
from pcreg.geometry.se3 import inverse

CELL = 0.1  # metres, of the grid of free places
CLEAR = 0.3  # metres from the camera to things at its height
SAMPLES = 16  # of the path per fragment, before smoothing
SPAN = 0.6  # share of the way to the next fragment along which the images of a fragment are taken

SPACINGS = (0.0125, 0.025)  # metres; the second is that of 3DMatch's published test fragments
MIN_POINTS = 2000  # of a fragment; most have 5,000 to 30,000, smaller ones show nearly nothing
DRIFT = (0.0005, 0.004)  # metres: range of the error of poses within a fragment, at a depth of 1.5 m
BEND = 0.06  # metres: largest drift of the poses of a fragment in recordings that bend

HOUSE = 1  # third number of the seed of a house's furniture

# The second of two cameras
SIZES = ((128, 96), (160, 120), (192, 144), (256, 192))  # pixels
NOISES = (0.008, 0.08)  # range of the sigma of the disparity, pixels
MAX_PIXELS = 155_000  # of all images of a fragment: about as many as the first camera's
SINGLE_IMAGE_SHARE = 0.3  # of the recordings by two cameras, in which its clouds are single images

# A camera with little noise, which sees most of a room at once
WIDE = DepthCamera(width=416, height=312, horizontal=90.0, far=6.5, noise=0.01, distortion=0.0, wander=0.3)


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
    poses = camera_poses(smooth[:, :3], smooth[:, 3], smooth[:, 4], roll)
    within = np.linspace(0, SPAN * SAMPLES, frames).round().astype(int)
    return poses[np.arange(fragments)[:, None] * SAMPLES + within]


def _stations(rng: np.random.Generator, scene: Scene, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Camera positions and target points, (count, 3) each."""
    places, blocked = free_places(scene)
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
    # The next station is mostly near the last one in place and heading.
    heading = np.arctan2(*(targets - eyes)[:, 1::-1].T)
    swing = np.abs((heading - heading[:, None] + np.pi) % (2 * np.pi) - np.pi)
    far = np.linalg.norm(eyes - eyes[:, None], axis=2) + 0.8 * swing
    order, left = [0], list(range(1, count))
    while left:
        missed = far[order[-1], left] + rng.gumbel(0, 0.4, len(left))
        order.append(left.pop(int(missed.argmin())))
    return eyes[order], targets[order]


def free_places(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
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


def camera_poses(eye: np.ndarray, yaw: np.ndarray, pitch: np.ndarray, roll: np.ndarray) -> np.ndarray:
    """T_world_camera (F, 4, 4) of cameras at eye (F, 3), angles in radians."""
    forward = np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], 1)
    right = np.stack([np.sin(yaw), -np.cos(yaw), np.zeros_like(yaw)], 1)
    down = np.cross(forward, right)
    c, s = np.cos(roll)[:, None], np.sin(roll)[:, None]
    T = np.zeros((len(eye), 4, 4))
    T[:, :3, 0], T[:, :3, 1] = c * right + s * down, c * down - s * right
    T[:, :3, 2], T[:, :3, 3], T[:, 3, 3] = forward, eye, 1
    return T


def record(
    seed: int,
    index: int,
    device: Device = "cpu",
    *,
    frames: int = 8,
    camera: DepthCamera | None = None,
    house: int | None = None,
    bend: float = 0.0,
) -> Recording:
    """Recording `index` of the endless series `seed`: 15 to 30 fragments of one scene.

    Scenes of one `house` have the same furniture, each its own arrangement of it. Each fragment is fused from
    `frames` images, whose poses drift by up to `bend` metres from the first to the last; those of fewer than
    MIN_POINTS are left out.
    """
    rng, generator = random_of(seed, index, device)
    camera = camera or _kinect(rng)  # sensors differ
    scene = indoor_scene(rng, None if house is None else np.random.default_rng([seed, house, HOUSE]))
    return Visit(rng, generator, scene, camera).fragments(int(rng.integers(15, 31)), frames, bend)


def record_by_two(seed: int, index: int, device: Device = "cpu", *, bend: float = 0.0) -> Recording:
    """Recording `index` of a scene by two depth cameras, each on its own path.

    The first makes 8 to 15 fragments as in `record`. The second differs in resolution, field of view, range
    and noise, and fuses its 8 to 15 fragments from another number of images on another lattice; or its
    clouds are single images. About half of the pairs have a cloud of each camera. For `bend` see `record`.
    """
    rng, generator = random_of(seed, index, device)
    first, scene = _kinect(rng), indoor_scene(rng)
    parts = [Visit(rng, generator, scene, first).fragments(int(rng.integers(8, 16)), 8, bend)]
    width, height = SIZES[int(rng.integers(len(SIZES)))]
    second = DepthCamera(
        width=width,
        height=height,
        horizontal=rng.uniform(50, 90),
        far=rng.uniform(3.5, 5.0),
        noise=log_uniform(rng, *NOISES),
        distortion=rng.uniform(0, 0.08),
        wander=rng.uniform(0.3, 2.0),
    )
    visit, count = Visit(rng, generator, scene, second), int(rng.integers(8, 16))
    if rng.random() < SINGLE_IMAGE_SHARE:
        parts.append(visit.images(count))
    else:
        fusion = Fusion(rng.uniform(0.006, 0.01), rng.uniform(*SPACINGS))
        frames = int(rng.integers(2, MAX_PIXELS // (width * height) + 1))
        parts.append(visit.fragments(count, frames, bend, fusion))
    return Recording.join(*parts)


def record_scans(
    seed: int, index: int, device: Device = "cpu", *, scans: int = 6, camera: DepthCamera = WIDE
) -> Recording:
    """Recording `index` of single, wide depth images some steps apart."""
    rng, generator = random_of(seed, index, device)
    return Visit(rng, generator, indoor_scene(rng), camera).images(scans)


def _kinect(rng: np.random.Generator) -> DepthCamera:
    return DepthCamera(
        noise=rng.uniform(0.015, 0.05), distortion=rng.uniform(0.02, 0.08), wander=rng.uniform(1.0, 2.0)
    )


@dataclass(frozen=True)
class Visit:
    """Walk with a depth camera through a scene."""

    rng: np.random.Generator
    generator: torch.Generator
    scene: Scene
    camera: DepthCamera

    def images(self, count: int) -> Recording:
        """Single images along the walk."""
        T_world_camera = camera_path(self.rng, self.scene, count, frames=1)[:, 0]
        return Recording([self.camera.points(image) for image in self._depth(T_world_camera)], T_world_camera)

    def fragments(self, count: int, frames: int, bend: float, fusion: Fusion | None = None) -> Recording:
        """Fragments of `frames` images each, without those of fewer than MIN_POINTS."""
        rng, shape = self.rng, (count, frames)
        T_world_camera = camera_path(rng, self.scene, count, frames)
        T_first_world = np.stack([inverse(T[0]) for T in T_world_camera])[:, None]
        T_first_camera = T_first_world @ T_world_camera @ _drift(rng, shape)
        if bend:
            T_first_camera = T_first_camera @ _walk(rng, shape, bend)
        depth = self._depth(T_world_camera.reshape(-1, 4, 4)).unflatten(0, shape)
        fusion = fusion or Fusion(spacing=rng.choice(SPACINGS))
        in_first = on_device(T_first_camera, self.generator.device)
        clouds = fusion.fragments(self.camera, depth, in_first, self.generator)
        return Recording(clouds, T_world_camera[:, 0]).without_small(MIN_POINTS)

    def _depth(self, T_world_camera: np.ndarray) -> Tensor:
        """Depth images (F, height, width) from poses (F, 4, 4)."""
        poses = on_device(T_world_camera, self.generator.device)
        return self.camera.depth(self.scene.solids, poses, self.generator)


def _drift(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Pose errors (fragments, frames, 4, 4) that grow along each fragment from none."""
    grown = np.linspace(0, 1, shape[1])[None, :, None] ** 0.5 * rng.uniform(*DRIFT)
    turns = rng.standard_normal((*shape, 3)) * grown / 1.5
    return _small(turns, rng.standard_normal((*shape, 3)) * grown)


def _walk(rng: np.random.Generator, shape: tuple[int, int], bend: float) -> np.ndarray:
    """Motions (fragments, frames, 4, 4) of random walks, each around the mean of its fragment.

    From first to last frame a walk goes up to `bend` metres, and turns by as much at a depth of 1.5 m.
    """
    steps = rng.standard_normal((*shape, 6)) * rng.uniform(0, bend, (shape[0], 1, 1)) / shape[1] ** 0.5
    walked = steps.cumsum(1)
    walked -= walked.mean(1, keepdims=True)
    return _small(walked[..., :3] / 1.5, walked[..., 3:])


def _small(turns: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Motions (..., 4, 4) by small rotation vectors (..., 3), in radians, and translations (..., 3)."""
    x, y, z = np.moveaxis(turns, -1, 0)
    T = np.tile(np.eye(4), (*turns.shape[:-1], 1, 1))
    T[..., 0, 1], T[..., 0, 2], T[..., 1, 2] = -z, y, -x
    T[..., 1, 0], T[..., 2, 0], T[..., 2, 1] = z, -y, x
    T[..., :3, 3] = shifts
    return T
