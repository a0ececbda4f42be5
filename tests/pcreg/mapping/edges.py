"""Pose graphs with a given answer, and scans of given points."""

from types import SimpleNamespace

import numpy as np

from pcreg.geometry.normals import normals_of
from pcreg.geometry.se3 import inverse, random_rotation, rotation_about, se3
from pcreg.mapping.graph import Edge
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.submap import Scan
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.matching.screening import Keypoints
from pcreg.runtime.records import Records

VOXEL = 0.05
COVARIANCE = np.eye(6) / 1000


def edge(
    source: int,
    target: int,
    T_target_source: np.ndarray,
    confidence: float = 0.95,
    covariance: np.ndarray = COVARIANCE,
) -> Edge:
    return Edge(source, target, T_target_source, confidence, covariance)


def random_poses(n: int, seed: int = 0) -> np.ndarray:
    """(n, 4, 4), the first the identity."""
    rng = np.random.default_rng(seed)
    poses = [se3(random_rotation(rng), rng.uniform(-3, 3, 3)) for _ in range(n)]
    return inverse(poses[0]) @ np.array(poses)


def measured(
    poses: np.ndarray, source: int, target: int, *, noise: float = 0.002, confidence: float = 0.95
) -> Edge:
    """The edge between two poses, with noise in metres and radians."""
    rng = np.random.default_rng([source, target])
    turn = rotation_about(rng.standard_normal(3), np.degrees(noise) * rng.standard_normal())
    T = inverse(poses[target]) @ poses[source] @ se3(turn, noise * rng.standard_normal(3))
    return edge(source, target, T, confidence)


def wrong(source: int, target: int, confidence: float = 0.95) -> Edge:
    """An edge with a random motion, which contradicts all others."""
    rng = np.random.default_rng([source, target, 1])
    return edge(source, target, se3(random_rotation(rng), rng.uniform(-3, 3, 3)), confidence)


def probes(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(9)
    return [rng.uniform(-1, 1, (50, 3)) for _ in range(n)]


def scan(points: np.ndarray) -> Scan:
    keypoints = Keypoints(points.astype(np.float32), np.ones((len(points), 4), np.float32), VOXEL)
    return Scan(LocalFrame(np.zeros(3), 1e-6), keypoints, points, normals_of(points, 3 * VOXEL)[0])


def growing_map(folder, scans):
    """A map of scans without files, whose records are kept in the folder."""
    return GrowingMap(SimpleNamespace(stamp=len), scans, VOXEL, Records(folder / "pairs.jsonl", {}), None)
