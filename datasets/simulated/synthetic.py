"""Pairs of scans of procedurally generated rooms: no download, exact ground truth, any number.

Each room (datasets/simulated/room.py) is seen by a sensor from two places, with a limited field of view, so
that the scans share about half of their surface. A ray ends at the first surface it meets: what stands
behind is not in the scan. Points are in the frame of their own sensor: x forward, y left, z up,
the sensor at the origin. The same seed gives the same clouds, bit by bit.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from pcreg.datasets.simulated.room import UP, Room, furnished_room
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import inverse, rotation_about, se3
from pcreg.io.pairs import Pair
from pcreg.runtime.errors import InputError

OVERLAP_DISTANCE = 0.05  # metres: a source point with a target point this near is shared


@dataclass(frozen=True)
class Scanner:
    """A depth sensor with one ray every `step` degrees and noise that grows with the squared range."""

    horizontal: float = 100.0  # field of view, degrees
    vertical: float = 80.0
    pitch: float = 12.0  # the middle ray looks this far down
    step: float = 0.25
    noise: tuple[float, float] = (0.002, 0.0005)  # sigma = a + b range^2, metres
    grazing: float = 0.07  # a ray within about 4 degrees of the surface does not return

    def rays(self) -> np.ndarray:
        """Unit directions (N, 3) in the sensor's frame."""
        azimuth = np.radians(np.arange(-self.horizontal / 2, self.horizontal / 2, self.step))
        elevation = np.radians(np.arange(-self.vertical / 2, self.vertical / 2, self.step) - self.pitch)
        azimuth, elevation = (grid.ravel() for grid in np.meshgrid(azimuth, elevation))
        level = np.cos(elevation)
        return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=1)

    def scan(self, room: Room, T_world_sensor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The points (N, 3) float64 of the room seen from T_world_sensor (4, 4), in the sensor's frame."""
        import open3d

        scene = open3d.t.geometry.RaycastingScene()
        scene.add_triangles(room.mesh.vertices.astype(np.float32), room.mesh.faces.astype(np.uint32))
        rays = self.rays()
        directions = rays @ T_world_sensor[:3, :3].T
        origins = np.broadcast_to(T_world_sensor[:3, 3], directions.shape)
        hits = scene.cast_rays(np.hstack([origins, directions]).astype(np.float32))
        distance = hits["t_hit"].numpy().astype(np.float64)  # infinite where nothing is met
        cosine = np.abs((hits["primitive_normals"].numpy() * directions).sum(1))
        seen = np.isfinite(distance) & (cosine > self.grazing)
        distance = distance[seen]
        constant, quadratic = self.noise
        distance += rng.standard_normal(len(distance)) * (constant + quadratic * distance**2)
        return rays[seen] * distance[:, None]


@dataclass(frozen=True)
class ScanPair:
    """Two scans of one room, each in its sensor's frame, and where the sensors stood."""

    source: np.ndarray  # (N, 3)
    target: np.ndarray  # (M, 3)
    T_world_source: np.ndarray  # (4, 4)
    T_world_target: np.ndarray  # (4, 4)
    overlap: float

    @property
    def T_target_source(self) -> np.ndarray:
        return inverse(self.T_world_target) @ self.T_world_source


class SyntheticRooms:
    """`count` pairs of scans, one room each. Room n depends on (seed, n) alone, not on `count`.

    `overlap` bounds the fraction of source points with a target point within 5 cm. Raises
    InputError for a count below one.
    """

    name = "generated rooms"
    left_out = ()
    outdoor = False
    viewpoint = "sensor"

    def __init__(
        self,
        seed: int = 0,
        count: int = 8,
        overlap: tuple[float, float] = (0.45, 0.55),
        step: float = 0.25,
    ) -> None:
        if count < 1:
            raise InputError(f"count is {count}; ask for at least one room")
        self.seed = seed
        self.count = count
        self.overlap = tuple(overlap)
        self.scanner = Scanner(step=step)

    @cached_property
    def pairs(self) -> list[Pair]:
        pairs = []
        for index in range(self.count):
            room = self.room(index)
            names = f"room-{index}/source", f"room-{index}/target"
            pairs.append(Pair(*names, room.T_target_source, scene=f"room-{index}", overlap=room.overlap))
        return pairs

    def cloud(self, name: str) -> np.ndarray:
        room, _, side = name.partition("/")
        index = room.removeprefix("room-")
        if not (index.isdecimal() and int(index) < self.count and side in ("source", "target")):
            raise InputError(f"{name}: no such scan; names are room-0/source to room-{self.count - 1}/target")
        return getattr(self.room(int(index)), side)

    def room(self, index: int) -> ScanPair:
        """The scans of room `index` with their poses."""
        return _scan_pair(self.seed, index, self.overlap, self.scanner)


@lru_cache(maxsize=2)
def _scan_pair(seed: int, index: int, overlap: tuple[float, float], scanner: Scanner) -> ScanPair:
    """Draw a room, then pairs of poses until the overlap of the scans is within its bounds."""
    rng = np.random.default_rng([seed, index])
    room = furnished_room(rng)
    for _ in range(200):
        poses = [_pose(room, rng) for _ in range(2)]
        if np.linalg.norm(poses[0][:3, 3] - poses[1][:3, 3]) < 1.0:
            continue
        source, target = (scanner.scan(room, pose, rng) for pose in poses)
        if min(np.linalg.norm(scan, axis=1).min() for scan in (source, target)) < 0.4:
            continue  # too close to the furniture to be a sensible place
        shared = measured_overlap(source, target, inverse(poses[1]) @ poses[0], OVERLAP_DISTANCE)
        if overlap[0] <= shared <= overlap[1]:
            return ScanPair(source, target, *poses, shared)
    raise InputError(f"no two views of room {index} share {overlap} of their surface; widen overlap")


def _pose(room: Room, rng: np.random.Generator) -> np.ndarray:
    """T_world_sensor (4, 4) of a hand-held sensor: at eye height, roughly facing the middle of the room."""
    margin = 0.8
    x, y = rng.uniform(margin, room.size[:2] - margin)
    facing = np.degrees(np.arctan2(room.size[1] / 2 - y, room.size[0] / 2 - x)) + rng.uniform(-50, 50)
    tilt = rotation_about(rng.standard_normal(3), rng.uniform(0, 6))
    return se3(rotation_about(UP, facing) @ tilt, np.array([x, y, rng.uniform(1.3, 1.7)]))
