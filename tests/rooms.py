"""Scans of simulated rooms, stored as depth images: tests/data/rooms.npz, and that of `pcreg demo`.

    python -m tests.rooms        makes the files again

Points are in the frame of their camera: x right, y down, z forward, metres.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from pcreg.cli.demo import SCANS, UNIT, points
from pcreg.datasets.simulated.indoor.recording import WIDE, DepthCamera, record_scans
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import inverse
from pcreg.runtime.files import replacing

PATH = Path(__file__).parent / "data" / "rooms.npz"
CAMERA = replace(WIDE, width=208, height=156)
# Seed of a room and two of its scans, 1.3 to 2.3 m apart; about half of the first is in the second.
ROOMS = ((26, 4, 0), (50, 4, 1), (37, 4, 0))


@dataclass(frozen=True)
class Room:
    """Two scans of one room, (N, 3) and (M, 3) float64, and where the cameras were."""

    source: np.ndarray
    target: np.ndarray
    T_world_source: np.ndarray
    T_world_target: np.ndarray

    @property
    def T_target_source(self) -> np.ndarray:
        return inverse(self.T_world_target) @ self.T_world_source

    @cached_property
    def overlap(self) -> float:
        """The fraction of source points with a target point within 5 cm."""
        return measured_overlap(self.source, self.target, self.T_target_source, 0.05)


def stored_room(number: int) -> Room:
    """One of the rooms in the file; tests have the first as the fixture `room`."""
    with np.load(PATH) as file:
        depth, poses = file["depth"][number], file["T_world_camera"][number]
    return Room(*(points(image, CAMERA.focal) for image in depth), *poses)


def recorded(seed: int, scans: list[int], camera: DepthCamera) -> tuple[np.ndarray, np.ndarray]:
    """Depths (2, height, width) and poses (2, 4, 4) of two scans of a room."""
    made, depth = record_scans(seed, 0, camera=camera), []
    for scan in scans:
        cloud = made.clouds[scan].double().numpy()
        column, row = np.round(camera.focal * cloud[:, :2] / cloud[:, 2:] + camera.centre).astype(int).T
        image = np.zeros((camera.height, camera.width), np.uint16)
        image[row, column] = np.round(cloud[:, 2] / UNIT)
        depth.append(image)
    return np.stack(depth), made.T_world_cloud[scans]


def simulated() -> dict[str, np.ndarray]:
    """Content of the file of the tests: depths (rooms, 2, height, width) and poses (rooms, 2, 4, 4)."""
    depth, poses = zip(*(recorded(seed, scans, CAMERA) for seed, *scans in ROOMS), strict=True)
    return {"depth": np.stack(depth), "T_world_camera": np.stack(poses)}


def simulated_demo() -> dict[str, np.ndarray]:
    """Content of the file of `pcreg demo`."""
    depth, (T_world_source, T_world_target) = recorded(59, [3, 5], WIDE)
    motion = inverse(T_world_target) @ T_world_source
    return {"depth": depth, "focal": np.array(WIDE.focal), "T_target_source": motion}


if __name__ == "__main__":
    for path, arrays in ((PATH, simulated()), (SCANS, simulated_demo())):
        with replacing(path) as temporary:
            np.savez_compressed(temporary, **arrays)
