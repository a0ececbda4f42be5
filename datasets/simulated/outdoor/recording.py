"""Recordings of procedural outdoor scenes by spinning LiDARs: endless, seeded, on the CPU or a GPU."""

from dataclasses import replace

import numpy as np
import torch

from pcreg.datasets.simulated.outdoor.drive import Carrier, drive_through, in_way
from pcreg.datasets.simulated.outdoor.scene import outdoor_scene
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.datasets.simulated.outdoor.spinning_lidar import LIDARS, Lidar, sweeps
from pcreg.datasets.simulated.recording import Recording

ON_FOOT = ("park", "court", "hall", "old town", "square")
# How often each model is used on wheels and in the hand.
ON_WHEELS_SHARES = {
    "HDL-64E": 6,
    "HDL-32E": 2,
    "VLP-16": 2,
    "VLP-32C": 2,
    "Pandar64": 2,
    "OS1-64": 2,
    "OS1-128": 1,
    "OS0-64": 1,
}
IN_HAND_SHARES = {"OS0-32": 3, "OS0-64": 3, "OS0-128": 2, "VLP-16": 2, "OS1-64": 1, "HDL-32E": 1}

MIN_BEAMS = 8  # of a LiDAR that keeps every 2nd, 4th or 8th beam of its model

HEAVY = ("HDL-64E", "Pandar64", "VLP-32C")  # seldom on a robot


def record(
    seed: int,
    index: int,
    device: torch.device | str = "cpu",
    kind: str | None = None,
    model: str | None = None,
    sensors: int = 1,
) -> Recording:
    """Recording `index`: 10 to 20 sweeps of one LiDAR on one way through one scene.

    With several `sensors` as many LiDARs go through the scene, each for itself: another model, on another
    carrier and another way, and each but the first with all of its beams or with every 2nd, 4th or 8th. What
    moves stands elsewhere for each, and so do the finest bumps of surfaces.

    Consecutive sweeps are up to a few metres from each other, so pairs of 0 to 40 m occur; some ways turn
    into a side street, some come back. `kind` of scene and `model` of LiDAR are random if not given. The
    same arguments give the same clouds, on `device`.
    """
    rng = np.random.default_rng([seed, index])
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
    scene = outdoor_scene(rng, kind)
    passes = []
    for number in range(sensors):
        own = np.random.default_rng([seed, index, number]) if number else rng
        lidar, carrier = _lidar(own, scene, model)
        if number:
            max_step = len(lidar.elevation) // MIN_BEAMS
            lidar = lidar.every_beam(int(own.choice([step for step in (1, 2, 4, 8) if step <= max_step])))
        drive = drive_through(own, scene, carrier)
        passes.append((lidar, drive, _body(own, carrier)))
    free = ~np.any([in_way(scene, drive) for _, drive, _ in passes], axis=0)
    scene = replace(scene, things=scene.things.where(free))
    clouds = [cloud for each in passes for cloud in sweeps(scene, *each, generator)]
    return Recording(clouds, np.concatenate([drive.T_world_sensor for _, drive, _ in passes]))


def record_by_two(seed: int, index: int, device: torch.device | str = "cpu") -> Recording:
    """Recording `index` of a scene through which two LiDARs went: half of its pairs are of both."""
    return record(seed, index, device, sensors=2)


def _lidar(rng: np.random.Generator, scene: Scene, model: str | None) -> tuple[Lidar, Carrier]:
    """A LiDAR of some model, or of that given, and what it is on."""
    in_hand = rng.random() < (0.9 if scene.kind == "hall" else 0.5 if scene.kind in ON_FOOT else 0.08)
    if model is not None:
        in_hand = model not in ON_WHEELS_SHARES or (in_hand and model in IN_HAND_SHARES)
    shares = IN_HAND_SHARES if in_hand else ON_WHEELS_SHARES
    drawn = str(rng.choice(list(shares), p=np.array(list(shares.values())) / sum(shares.values())))
    model = model or drawn
    lidar = LIDARS[model].every_column(int(rng.choice([1, 2])))
    # Devices of one model differ, and so does the air.
    min_return, noise = (lidar.min_return, lidar.noise) * np.exp(rng.normal(0, [0.7, 0.4]))
    lidar = replace(lidar, min_return=float(min_return), noise=float(noise))
    low = rng.random() < (0.05 if model in HEAVY else 0.4)
    return lidar, Carrier.HAND if in_hand else Carrier.ROBOT if low else Carrier.ROOF


def _body(rng: np.random.Generator, carrier: Carrier) -> np.ndarray:
    """Corners (2, 3) in the sensor's frame: a person behind it, or a roof with the sensor over its middle."""
    if carrier is Carrier.HAND:
        away, side = rng.uniform([0.3, 0.15], [0.8, 0.3])
        return np.array([[-away - 0.3, -side, -2.0], [-away, side, rng.uniform(-0.6, 0.3)]])
    above = rng.uniform(0.2, 0.6)
    front, back, side = above * rng.uniform(0.5, [3.5, 3.5, 2.5])
    return np.array([[-back, -side, -2.0], [front, side, -above]])
