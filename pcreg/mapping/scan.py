"""A scan of a map at one voxel size."""

from dataclasses import dataclass

import numpy as np

from pcreg.arrays import every_nth, to_host
from pcreg.geometry.se3 import transform
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.matching.screening import Keypoints

MAX_PROBES = 200


@dataclass(frozen=True)
class Scan:
    """A usable scan in its local frame."""

    frame: LocalFrame
    keypoints: Keypoints
    surface: np.ndarray  # (S, 3) float64, metres
    normals: np.ndarray  # (S, 3) float64

    @staticmethod
    def of(cloud: DescribedCloud, frame: LocalFrame, voxel: float) -> "Scan":
        return Scan(frame, Keypoints.of(cloud, voxel), to_host(cloud.surface), to_host(cloud.normals))

    @property
    def probes(self) -> np.ndarray:
        """Some points (P, 3) of the surface, by which motions of the scan are compared."""
        return every_nth(self.surface, MAX_PROBES)


def displacement(T: np.ndarray, other: np.ndarray, probes: np.ndarray) -> float:
    """Root mean square distance in metres between points (P, 3) moved by two motions (4, 4)."""
    difference = transform(T, probes) - transform(other, probes)
    return float(np.sqrt((difference**2).sum(1).mean()))
