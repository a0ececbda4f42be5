"""Recordings of procedural outdoor scenes by LiDARs, on the CPU or a GPU."""

from dataclasses import replace

import numpy as np
import torch

from pcreg.datasets.simulated.draws import Device, by_share, random_of
from pcreg.datasets.simulated.outdoor.drive import Carrier, Drive, cleared, drive_through
from pcreg.datasets.simulated.outdoor.lidar import sweeps
from pcreg.datasets.simulated.outdoor.lidar_models import LIDARS, SOLID_STATE_LIDARS, Lidar, SpinningLidar
from pcreg.datasets.simulated.outdoor.places import car_park, court, hall, park, yard
from pcreg.datasets.simulated.outdoor.site import Scene
from pcreg.datasets.simulated.outdoor.streets import city, country, highway, old_town, square, suburb
from pcreg.datasets.simulated.recorded import Recording
from pcreg.geometry.se3 import transform
from pcreg.kernels.grid import sample_cloud

# fmt: off
KINDS = {  # of scenes, and how often each is drawn
    "old town": (old_town, 3), "city": (city, 5), "square": (square, 4), "suburb": (suburb, 3),
    "highway": (highway, 2), "park": (park, 2), "country": (country, 2), "car park": (car_park, 2),
    "yard": (yard, 2), "court": (court, 3), "hall": (hall, 4),
}
ON_FOOT = ("park", "court", "hall", "old town", "square")
# Shares of the models on wheels and in the hand
ON_WHEELS_SHARES = {
    "HDL-64E": 6, "HDL-32E": 2, "VLP-16": 2, "VLP-32C": 2, "Pandar64": 2, "OS1-64": 2,
    "OS1-128": 1, "OS0-64": 1,
}
IN_HAND_SHARES = {"OS0-32": 3, "OS0-64": 3, "OS0-128": 2, "VLP-16": 2, "OS1-64": 1, "HDL-32E": 1}
# fmt: on

SOLID_STATE_SHARE = 0.4  # of the second LiDARs
SWEEP_POINTS = 40_000  # of a solid-state LiDAR at most: the points of half a second are thinned
SUBMAP_SHARE = 0.5  # of the recordings by two LiDARs, in which the sweeps of one of them are fused
MIN_BEAMS = 8  # of a LiDAR that keeps every 2nd, 4th or 8th beam of its model

SWEEPS = (2, 5)  # from and to, of a submap; the last of a drive may have fewer
SPACINGS = (0.05, 0.25)  # metres: range of the cells of submaps that keep one point each

HEAVY = ("HDL-64E", "Pandar64", "VLP-32C")  # seldom on a robot


def outdoor_scene(rng: np.random.Generator, kind: str | None = None) -> Scene:
    """A scene of one of KINDS, or a random one."""
    name = kind or by_share({name: share for name, (_, share) in KINDS.items()}, rng.random())
    return KINDS[name][0](rng).scene(name)


def record(
    seed: int, index: int, device: Device = "cpu", kind: str | None = None, *, again_sparse: bool = False
) -> Recording:
    """Recording `index`: 10 to 20 sweeps of one spinning LiDAR on one path through one scene.

    Consecutive sweeps are up to a few metres from each other, so pairs 0 to 40 m apart occur; some paths turn
    into a side street, some come back. The `kind` of scene is random if not given. With `again_sparse` all
    sweeps are repeated with every 2nd, 4th or 8th beam.
    """
    rng, generator = random_of(seed, index, device)
    scene = outdoor_scene(rng, kind)
    lidar, carrier = _lidar(rng, scene)
    about = drive_through(rng, scene, carrier), _body(rng, carrier)
    lidars = [lidar, _every_beam(rng, lidar, (2, 4, 8))] if again_sparse else [lidar]
    return Recording.join(*_recorded(scene, [(each, *about) for each in lidars], generator))


def record_by_two(seed: int, index: int, device: Device = "cpu", kind: str | None = None) -> Recording:
    """Recording `index` of a scene by two LiDARs, each on its own carrier and path.

    The first LiDAR is that of `record`. The second is a solid-state one, or a spinning one with all of its
    beams or with every 2nd, 4th or 8th. In some recordings the sweeps of one LiDAR are fused into submaps.
    Positions of moving things and the finest relief differ between the two. Half of the pairs are of both.
    """
    first, generator = random_of(seed, index, device)
    second = np.random.default_rng([seed, index, 1])
    scene, passes = outdoor_scene(first, kind), []
    for rng, draw in ((first, _lidar), (second, _other_lidar)):
        lidar, carrier = draw(rng, scene)
        passes.append((lidar, drive_through(rng, scene, carrier), _body(rng, carrier)))
    recordings = _recorded(scene, passes, generator)
    if second.random() < SUBMAP_SHARE:
        fused = int(second.integers(2))
        recordings[fused] = submaps(second, recordings[fused])
    return Recording.join(*recordings)


def _recorded(
    scene: Scene, passes: list[tuple[Lidar, Drive, np.ndarray]], generator: torch.Generator
) -> list[Recording]:
    """Record passes (LiDAR, drive, occluding body), without obstacles on the paths."""
    scene = cleared(scene, np.concatenate([drive.T_world_sensor[:, :3, 3] for _, drive, _ in passes]))
    return [Recording(sweeps(scene, *each, generator), each[1].T_world_sensor) for each in passes]


def _other_lidar(rng: np.random.Generator, scene: Scene) -> tuple[Lidar, Carrier]:
    """A solid-state LiDAR, or a spinning one, perhaps with fewer beams, and its carrier."""
    lidar, carrier = _lidar(rng, scene)
    if rng.random() < SOLID_STATE_SHARE:
        solid_state = SOLID_STATE_LIDARS[str(rng.choice(list(SOLID_STATE_LIDARS)))]
        solid_state = solid_state.with_seconds(rng.uniform(0.1, 0.5), SWEEP_POINTS)
        return _unit(rng, solid_state), carrier
    return _every_beam(rng, lidar, (1, 2, 4, 8)), carrier


def _every_beam(rng: np.random.Generator, lidar: SpinningLidar, steps: tuple[int, ...]) -> SpinningLidar:
    """The LiDAR with every n-th beam, n one of `steps` that leave MIN_BEAMS beams."""
    max_step = len(lidar.elevation) // MIN_BEAMS
    step = int(rng.choice([step for step in steps if step <= max_step]))
    return replace(lidar, elevation=lidar.elevation[::step])


def _lidar(rng: np.random.Generator, scene: Scene) -> tuple[SpinningLidar, Carrier]:
    """A spinning LiDAR and its carrier."""
    in_hand = rng.random() < (0.9 if scene.kind == "hall" else 0.5 if scene.kind in ON_FOOT else 0.08)
    model = by_share(IN_HAND_SHARES if in_hand else ON_WHEELS_SHARES, rng.random())
    lidar = LIDARS[model]
    lidar = _unit(rng, replace(lidar, columns=lidar.columns // int(rng.choice([1, 2]))))
    low = rng.random() < (0.05 if model in HEAVY else 0.4)
    return lidar, Carrier.HAND if in_hand else Carrier.ROBOT if low else Carrier.ROOF


def _unit(rng: np.random.Generator, lidar: Lidar) -> Lidar:
    """The model with the sensitivity and the noise of one device."""
    min_return, noise = (lidar.min_return, lidar.noise) * np.exp(rng.normal(0, [0.7, 0.4]))
    return replace(lidar, min_return=float(min_return), noise=float(noise))


def _body(rng: np.random.Generator, carrier: Carrier) -> np.ndarray:
    """Corners (2, 3) of what occludes: a person behind the sensor, or a roof below it."""
    if carrier is Carrier.HAND:
        away, side = rng.uniform([0.3, 0.15], [0.8, 0.3])
        return np.array([[-away - 0.3, -side, -2.0], [-away, side, rng.uniform(-0.6, 0.3)]])
    above = rng.uniform(0.2, 0.6)
    front, back, side = above * rng.uniform(0.5, [3.5, 3.5, 2.5])
    return np.array([[-back, -side, -2.0], [front, side, -above]])


def submaps(rng: np.random.Generator, recording: Recording) -> Recording:
    """Submaps: runs of a few sweeps of one sensor, thinned, each in the frame of its middle sweep."""
    spacing, start = rng.uniform(*SPACINGS), 0
    clouds, poses = [], []
    while start < len(recording.clouds):
        end = start + int(rng.integers(*SWEEPS, endpoint=True))
        run = range(start, min(end, len(recording.clouds)))
        middle = run[len(run) // 2]
        parts = [transform(recording.motion(n, middle), recording.clouds[n].double()) for n in run]
        points = torch.cat(parts)
        clouds.append(points[sample_cloud(points, spacing)].float())
        poses.append(recording.T_world_cloud[middle])
        start = end
    return Recording(clouds, np.stack(poses))
