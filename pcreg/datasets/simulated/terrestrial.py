"""Recordings of rooms and sites by a terrestrial laser scanner, or by a LiDAR that stands still."""

from dataclasses import replace

import numpy as np

from pcreg.datasets.simulated.draws import Device, log_uniform, random_of
from pcreg.datasets.simulated.indoor.recording import free_places
from pcreg.datasets.simulated.indoor.scene import indoor_scene
from pcreg.datasets.simulated.outdoor.drive import Carrier, Drive, cleared, drive_through
from pcreg.datasets.simulated.outdoor.ground import Ground
from pcreg.datasets.simulated.outdoor.lidar import sweeps
from pcreg.datasets.simulated.outdoor.lidar_models import LIDARS, SpinningLidar
from pcreg.datasets.simulated.outdoor.recording import outdoor_scene
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.datasets.simulated.recorded import Recording
from pcreg.geometry.se3 import rotation_about, se3

INDOOR_SHARE = 0.4
STATIONS = (4, 8)
RANGES = (20.0, 80.0)  # metres
NOISES = (0.001, 0.008)  # metres
ROWS, COLUMNS = (128, 192, 256, 320), (512, 768, 1024)  # of directions between -60 and 85 degrees
TRIPOD = np.array([[-0.15, -0.15, -2.0], [0.15, 0.15, -0.1]])
SECONDS_BETWEEN_STATIONS = 240.0
BEAMS = (8, 16, 32)  # of a LiDAR


def record(seed: int, index: int, device: Device = "cpu", *, few_beams: bool = False) -> Recording:
    """Recording `index`: scans of one scene from 4 to 8 stations.

    With `few_beams` the scanner is a spinning LiDAR that keeps 8, 16 or 32 of its beams.
    """
    rng, generator = random_of(seed, index, device)
    count = int(rng.integers(*STATIONS, endpoint=True))
    scanner = (_lidar if few_beams else _scanner)(rng)
    scene, T_world_scanner = (_room if rng.random() < INDOOR_SHARE else _site)(rng, count)
    still = np.zeros((len(T_world_scanner), 3))
    drive = Drive(T_world_scanner, SECONDS_BETWEEN_STATIONS * np.arange(len(still)), still, still)
    return Recording(sweeps(scene, scanner, drive, TRIPOD, generator), T_world_scanner)


def _scanner(rng: np.random.Generator) -> SpinningLidar:
    """A terrestrial laser scanner."""
    rows, columns = int(rng.choice(ROWS)), int(rng.choice(COLUMNS))
    return SpinningLidar(
        tuple(np.linspace(85, -60, rows)),
        columns,
        far=rng.uniform(*RANGES),
        near=0.3,
        noise=log_uniform(rng, *NOISES),
        min_return=1e-6,
    )


def _lidar(rng: np.random.Generator) -> SpinningLidar:
    """A LiDAR that keeps 8, 16 or 32 of its beams."""
    model = LIDARS[str(rng.choice(list(LIDARS)))]
    beams = int(rng.choice([number for number in BEAMS if number <= len(model.elevation)]))
    return replace(model, elevation=model.elevation[:: len(model.elevation) // beams])


def _room(rng: np.random.Generator, count: int) -> tuple[Scene, np.ndarray]:
    """A room, and up to `count` stations (., 4, 4) on its floors."""
    room = indoor_scene(rng)
    places, cost = free_places(room)
    chosen = places[np.argsort(cost + rng.uniform(0, 1, len(cost)))[:count]]
    T = [
        se3(rotation_about((0, 0, 1), rng.uniform(0, 360)), np.array([*place, rng.uniform(1.1, 1.8)]))
        for place in chosen
    ]
    return Scene("room", Ground(), room.solids, (), (), relief=rng.uniform(0, 0.3)), np.stack(T)


def _site(rng: np.random.Generator, count: int) -> tuple[Scene, np.ndarray]:
    """A site, and stations (count, 4, 4) along one path through it."""
    scene = outdoor_scene(rng)
    T = drive_through(rng, scene, Carrier.ROOF).T_world_sensor
    T = T[np.linspace(0, len(T) - 1, count).astype(int)]
    return cleared(scene, T[:, :3, 3]), T
