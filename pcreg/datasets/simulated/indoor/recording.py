"""Recordings of procedural rooms: a scene, a walk through it with a depth camera, and its fragments."""

import numpy as np
import torch

from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera
from pcreg.datasets.simulated.indoor.fusion import Fusion
from pcreg.datasets.simulated.indoor.scene import Scene, indoor_scene
from pcreg.datasets.simulated.indoor.walk import camera_path
from pcreg.datasets.simulated.recording import Recording
from pcreg.geometry.se3 import inverse
from pcreg.kernels.transfer import moved

SPACINGS = (0.0125, 0.025)  # metres; the second is that of 3DMatch's published test fragments
MIN_POINTS = 2000  # of a fragment; most have 5,000 to 30,000, and one with fewer shows nearly nothing
DRIFT = (0.0005, 0.004)  # metres: range of the error of poses within a fragment, at a depth of 1.5 m

HOUSE = 1  # distinguishes the furniture of house n from recording n

# Of the second camera of two
SIZES = ((128, 96), (160, 120), (192, 144), (256, 192))  # pixels
NOISES = (0.008, 0.08)  # range of the sigma of the disparity, pixels
MAX_PIXELS = 155_000  # of all images of a fragment: about as many as the first camera's
SINGLE_IMAGE_SHARE = 0.3  # of the recordings of two, in which its clouds are single images

# A good scanner, which sees most of a room at once
WIDE = DepthCamera(width=416, height=312, horizontal=90.0, far=6.5, noise=0.01, distortion=0.0, wander=0.3)


def record(
    seed: int,
    index: int,
    device: torch.device | str = "cpu",
    *,
    frames: int = 8,
    camera: DepthCamera | None = None,
    house: int | None = None,
) -> Recording:
    """Recording `index` of the endless series `seed`: 15 to 30 fragments of one scene.

    Scenes of one `house` have the same furniture, each its own arrangement of it. Each fragment is fused from
    `frames` images; those of fewer than MIN_POINTS are left out. The same arguments on the same machine give
    the same clouds.
    """
    rng, generator = _random(seed, index, device)
    camera = camera or _kinect(rng)  # sensors differ
    scene = indoor_scene(rng, None if house is None else np.random.default_rng([seed, house, HOUSE]))
    return _fragments(rng, generator, scene, camera, int(rng.integers(15, 31)), frames)


def record_by_two(seed: int, index: int, device: torch.device | str = "cpu") -> Recording:
    """Recording `index` of a scene through which two depth cameras went, each on a way of its own.

    The first makes 8 to 15 fragments as in `record`. The second differs in resolution, field of view, range
    and noise, and fuses its 8 to 15 fragments from another number of images on another lattice; or its
    clouds are single images. About half of the pairs are of both cameras.
    """
    rng, generator = _random(seed, index, device)
    first, scene = _kinect(rng), indoor_scene(rng)
    parts = [_fragments(rng, generator, scene, first, int(rng.integers(8, 16)), 8)]
    width, height = SIZES[int(rng.integers(len(SIZES)))]
    second = DepthCamera(
        width=width,
        height=height,
        horizontal=rng.uniform(50, 90),
        far=rng.uniform(3.5, 5.0),
        noise=float(np.exp(rng.uniform(*np.log(NOISES)))),
        distortion=rng.uniform(0, 0.08),
        wander=rng.uniform(0.3, 2.0),
    )
    count = int(rng.integers(8, 16))
    if rng.random() < SINGLE_IMAGE_SHARE:
        parts.append(_images(rng, generator, scene, second, count))
    else:
        voxel = rng.uniform(0.006, 0.01)
        fusion = Fusion(voxel, 5 * voxel, voxel, spacing=rng.uniform(*SPACINGS))
        frames = int(rng.integers(2, MAX_PIXELS // (width * height) + 1))
        parts.append(_fragments(rng, generator, scene, second, count, frames, fusion))
    clouds = [cloud for part in parts for cloud in part.clouds]
    return Recording(clouds, np.concatenate([part.T_world_cloud for part in parts]))


def record_scans(
    seed: int,
    index: int,
    device: torch.device | str = "cpu",
    *,
    scans: int = 6,
    camera: DepthCamera = WIDE,
) -> Recording:
    """Recording `index` of single depth images from places some steps away, each of much of a room.

    The same arguments on the same machine give the same clouds.
    """
    rng, generator = _random(seed, index, device)
    return _images(rng, generator, indoor_scene(rng), camera, scans)


def _random(seed: int, index: int, device: torch.device | str) -> tuple[np.random.Generator, torch.Generator]:
    rng = np.random.default_rng([seed, index])
    return rng, torch.Generator(device).manual_seed(int(rng.integers(2**62)))


def _kinect(rng: np.random.Generator) -> DepthCamera:
    return DepthCamera(
        noise=rng.uniform(0.015, 0.05), distortion=rng.uniform(0.02, 0.08), wander=rng.uniform(1.0, 2.0)
    )


def _images(
    rng: np.random.Generator, generator: torch.Generator, scene: Scene, camera: DepthCamera, count: int
) -> Recording:
    """Single images along a walk."""
    T_world_camera = camera_path(rng, scene, count, frames=1)[:, 0]
    poses = moved(torch.from_numpy(T_world_camera).float(), generator.device)
    depth = camera.depth(scene.solids, poses, generator)
    return Recording([camera.points(image) for image in depth], T_world_camera)


def _fragments(
    rng: np.random.Generator,
    generator: torch.Generator,
    scene: Scene,
    camera: DepthCamera,
    count: int,
    frames: int,
    fusion: Fusion | None = None,
) -> Recording:
    """Fragments along a walk, each of so many frames; those of fewer than MIN_POINTS are left out."""
    device = generator.device
    T_world_camera = camera_path(rng, scene, count, frames)
    T_first_camera = (
        np.stack([inverse(T[0]) for T in T_world_camera])[:, None]
        @ T_world_camera
        @ _drift(rng, T_world_camera.shape[:2])
    )
    poses, in_first = (moved(torch.from_numpy(T).float(), device) for T in (T_world_camera, T_first_camera))
    depth = camera.depth(scene.solids, poses.flatten(0, 1), generator).unflatten(0, (-1, frames))
    fusion = fusion or Fusion(spacing=rng.choice(SPACINGS))
    clouds = fusion.fragments(camera, depth, in_first, generator)
    kept = [n for n, cloud in enumerate(clouds) if len(cloud) >= MIN_POINTS]
    return Recording([clouds[n] for n in kept], T_world_camera[kept, 0])


def _drift(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Small motions (fragments, frames, 4, 4) that grow along each fragment, from none at its first frame."""
    grown = np.linspace(0, 1, shape[1])[None, :, None] ** 0.5 * rng.uniform(*DRIFT)
    x, y, z = np.moveaxis(rng.standard_normal((*shape, 3)) * grown / 1.5, 2, 0)
    T = np.zeros((*shape, 4, 4))
    T[..., :3, :3] = np.eye(3)
    T[..., 0, 1], T[..., 0, 2], T[..., 1, 2] = -z, y, -x
    T[..., 1, 0], T[..., 2, 0], T[..., 2, 1] = z, -y, x
    T[..., :3, 3] = rng.standard_normal((*shape, 3)) * grown
    T[..., 3, 3] = 1
    return T
