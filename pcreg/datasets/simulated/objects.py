"""Recordings of single objects, and of a few on a table, by a range scanner.

The scanner, in a hand or before a turntable, uses structured light: its projector casts shadows, and surfaces
at grazing angles are missed. Objects are made one metre large and scaled, with their noise, after the scan.
"""

import numpy as np
import torch

from pcreg.datasets.simulated.draws import Device, log_uniform, random_of
from pcreg.datasets.simulated.indoor.clutter import clutter
from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera
from pcreg.datasets.simulated.indoor.piece import extent, one_of, pose, ring
from pcreg.datasets.simulated.indoor.recording import camera_poses
from pcreg.datasets.simulated.indoor.styles import STYLES
from pcreg.datasets.simulated.outdoor import traffic
from pcreg.datasets.simulated.recorded import Recording
from pcreg.datasets.simulated.solids import Solids, balls, boxes, cones, on_device, rods
from pcreg.geometry.se3 import enlargement, random_rotation, se3, translation

SIZES = (0.05, 3.0)  # metres: range of the longest edge of what is scanned
VIEWS = (10, 16)  # of a recording
DISTANCES = (1.2, 2.0)  # from the middle to the scanner, in sizes of the object, as all lengths below
IN_VIEW = 0.62  # half of the width that an image shows at that distance
RELIEF = (1e-3, 0.04)  # range of the unevenness of surfaces
NOISES = (0.002, 0.05)  # range of the sigma of the disparity, pixels: 0.1 to 4 mm on an object of a metre
MIN_POINTS = 1000  # of a scan
TABLE_SHARE, ALONE_SHARE = 0.4, 0.3  # of recordings that show a table; of tables with a single object
BALLS = 24  # per limb


def record(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Recording `index`: scans of one object, or of a few on a table, from 10 to 16 viewpoints around it.

    Scans of fewer than MIN_POINTS are left out: a thin thing, such as a cord, may have none.
    """
    rng, generator = random_of(seed, index, device)
    on_table = rng.random() < TABLE_SHARE
    things, size = _on_table(rng) if on_table else _floating(rng), log_uniform(rng, *SIZES)
    distance, scale = rng.uniform(*DISTANCES), int(rng.integers(13, 23))
    camera = DepthCamera(
        width=16 * scale,
        height=12 * scale,
        horizontal=float(np.degrees(2 * np.arctan(IN_VIEW / distance))),
        near=0.2,
        far=4 * distance,
        noise=log_uniform(rng, *NOISES),
        distortion=rng.uniform(0, 0.02),
        wander=rng.uniform(0.1, 0.8),
        dull=0.0,
    )
    T_world_camera = _around(rng, int(rng.integers(*VIEWS, endpoint=True)), distance, on_table)
    # A ball around the scene, as pixels that see nothing would cast a shadow of the projector.
    things = Solids.join(things, balls(0, 0, 0, *[2 * distance] * 3))
    depth = camera.depth(things, on_device(T_world_camera, device), generator)
    reach = distance + rng.uniform(0.6, 1.1)
    clouds = [camera.points(torch.where(image < reach, image, 0)) for image in depth]
    return Recording(clouds, T_world_camera).without_small(MIN_POINTS).scaled(size)


def _around(rng: np.random.Generator, count: int, distance: float, on_table: bool) -> np.ndarray:
    """T_world_camera (count, 4, 4) facing the origin: by a turntable or a hand."""
    azimuth = rng.uniform(0, 360) + rng.uniform(20, 50) * np.arange(count)
    lowest = 10.0 if on_table else -40.0
    elevation = rng.uniform(lowest, 50) + rng.normal(0, 1, count)
    if rng.random() < 0.5:  # in a hand
        azimuth = azimuth + rng.normal(0, 15, count)
        elevation = rng.uniform(lowest, 70, count)
    azimuth, elevation = np.radians(azimuth), np.radians(elevation)
    level = np.cos(elevation)
    toward = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], 1)
    eyes = distance * toward + rng.normal(0, 0.05, (count, 3))
    return camera_poses(eyes, azimuth + np.pi, -elevation, np.radians(rng.normal(0, 8, count)))


def _floating(rng: np.random.Generator) -> Solids:
    """One object about the origin, mostly in a random orientation."""
    thing = _thing(rng)
    return thing.placed(se3(random_rotation(rng), np.zeros(3))) if rng.random() < 0.7 else thing


def _on_table(rng: np.random.Generator) -> Solids:
    """One to six upright things on a slab."""
    count = 1 if rng.random() < ALONE_SHARE else int(rng.integers(2, 7))
    parts = []
    for _ in range(count):
        thing = _thing(rng)
        size = rng.uniform(0.4, 1.0) if count > 1 else 1.0
        foot = -size * extent(thing)[0][2]
        x, y = rng.uniform(-0.2, 0.2, 2) * count if count > 1 else (0.0, 0.0)
        stretched = pose(x, y, foot, 360 * rng.random()) @ enlargement(size)
        parts.append(thing.placed(stretched))
    things = _of_one_metre(Solids.join(*parts))
    low, wide = extent(things)[0][2], rng.uniform(0.4, 1.2)
    return Solids.join(things, boxes(-wide, -wide, low - 0.05, wide, wide, low))


def _thing(rng: np.random.Generator) -> Solids:
    """A thing whose longest edge is one metre, with its middle at the origin and some relief."""
    relief = log_uniform(rng, *RELIEF)
    return _of_one_metre(one_of(rng, MAKERS)(rng)).uneven(relief)


def _of_one_metre(things: Solids) -> Solids:
    low, high = extent(things)
    return things.placed(enlargement(1 / (high - low).max()) @ translation(-(low + high) / 2))


def figure(rng: np.random.Generator) -> Solids:
    """A free form of bent, tapered limbs of overlapping balls; half are symmetric."""
    rows = np.empty((0, 6))
    for _ in range(int(rng.integers(2, 8))):
        heading = rng.standard_normal(3) + np.cumsum(rng.normal(0, 0.25, (BALLS, 3)), 0)
        step = heading / np.linalg.norm(heading, axis=1, keepdims=True) * rng.uniform(0.25, 1.0) / BALLS
        start = rows[rng.integers(len(rows)), :3] if len(rows) else np.zeros(3)
        radius = np.interp(np.linspace(0, 3, BALLS), range(4), rng.uniform(0.03, 0.2, 4))
        limb = np.c_[start + np.cumsum(step, 0), radius[:, None] * rng.uniform(0.6, 1.3, 3)]
        rows = np.concatenate([rows, limb])
    if rng.random() < 0.5:
        rows = np.concatenate([rows, rows * [-1, 1, 1, 1, 1, 1]])
    return balls(rows)


def primitive(rng: np.random.Generator) -> Solids:
    """One to four boxes, ellipsoids, cylinders, cones or rings, stuck together."""
    parts = []
    for _ in range(int(rng.integers(1, 5))):
        a, b, c = rng.uniform(0.15, 0.5, 3) * ([1, 1, 0.06] if rng.random() < 0.3 else [1, 1, 1])
        kind, upright = rng.integers(5), (a, 0, 0, -c, 0, 0, c)
        if kind < 2:
            part = boxes(-a, -b, -c, a, b, c) if kind == 0 else balls(0, 0, 0, a, b, c)
        elif kind < 4:
            part = rods(*upright) if kind == 2 else cones(*upright)
        else:
            part = ring(a, -c, c, 20, 0.02, rng.uniform(0.7, 1.4))
        parts.append(part.placed(se3(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))))
    return Solids.join(*parts)


def _furniture(rng: np.random.Generator) -> Solids:
    style = one_of(rng, STYLES)
    return one_of(rng, [*style.wall, *style.free])(rng).solids


def _vehicle(rng: np.random.Generator) -> Solids:
    return one_of(rng, [traffic.car, traffic.van, traffic.bicycle, traffic.person])(rng)


MAKERS = [*[figure] * 6, *[clutter] * 4, *[primitive] * 2, *[_furniture] * 3, _vehicle]
