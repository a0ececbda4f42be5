"""Scans of simulated rooms for tests, stored as depth images: tests/data/rooms.npz.

    python -m tests.rooms        makes the file again

Points are in the frame of their camera: x right, y down, z forward, metres.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from pcreg.datasets.simulated.indoor.recording import WIDE, record_scans
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import inverse
from pcreg.runtime.files import replacing

PATH = Path(__file__).parent / "data" / "rooms.npz"
CAMERA = replace(WIDE, width=208, height=156)
UNIT = 1e-4  # metres, of the stored depths
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
    images = torch.from_numpy(depth.astype(np.float64) * UNIT)
    return Room(*(CAMERA.points(image).numpy() for image in images), *poses)


def simulated() -> dict[str, np.ndarray]:
    """What the file holds: depths (rooms, 2, height, width) and poses (rooms, 2, 4, 4)."""
    depth, poses = [], []
    for seed, *scans in ROOMS:
        made = record_scans(seed, 0, camera=CAMERA)
        poses.append(made.T_world_cloud[scans])
        for scan in scans:
            points = made.clouds[scan].double().numpy()
            column, row = np.round(CAMERA.focal * points[:, :2] / points[:, 2:] + CAMERA.centre).astype(int).T
            image = np.zeros((CAMERA.height, CAMERA.width), np.uint16)
            image[row, column] = np.round(points[:, 2] / UNIT)
            depth.append(image)
    return {
        "depth": np.stack(depth).reshape(len(ROOMS), 2, *depth[0].shape),
        "T_world_camera": np.array(poses),
    }


if __name__ == "__main__":
    with replacing(PATH) as temporary:
        np.savez_compressed(temporary, **simulated())
