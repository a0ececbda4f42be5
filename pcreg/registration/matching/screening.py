"""Screening of pairs of scans by the number of matches that agree on one motion.

A thousand keypoints of one scan are matched with five thousand of the other, and motions are proposed by
the consistency of the matches (pcreg.registration.matching.spatial_consistency). Screening takes a fiftieth
of the time of a registration. It only ranks pairs.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pcreg.arrays import like, to_host
from pcreg.geometry.se3 import moved_by_each
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.matching.nearest import spread_rows
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.matching.spatial_consistency import consistent_motions
from pcreg.runtime import parallel
from pcreg.runtime.files import replacing
from pcreg.runtime.records import REGISTERING, code_fingerprint

MAX_QUERIES = 1_000
MAX_KEYPOINTS = 5_000
MIN_MATCHES = 4
MIN_AGREEMENT = 0.5  # share of the best place's or scale's agreeing matches, with which others are tried
KEYPOINT_DISTANCE_VOXELS = 2.0  # more than in a registration: a match may be a neighbour of the right one


@dataclass(frozen=True)
class Keypoints:
    """Some described points of a scan, evenly spread."""

    points: np.ndarray  # (K, 3) float32, metres, in the local frame of the scan
    features: np.ndarray  # (K, C) float32
    voxel: float  # metres, at which it was described

    @staticmethod
    def of(cloud: DescribedCloud, voxel: float) -> "Keypoints":
        """At most 5,000 points of a cloud that was described at `voxel` metres."""
        rows = spread_rows(len(cloud.points), MAX_KEYPOINTS)
        some = (to_host(each[like(rows, each)]).astype(np.float32) for each in (cloud.points, cloud.features))
        return Keypoints(*some, voxel)

    def checksum(self, prior: Prior) -> str:
        """A checksum of all that the screening of this scan depends on, except the other scan."""
        depends = repr((self.voxel, prior.to_dict(), code_fingerprint(*REGISTERING)))
        digest = hashlib.sha256(depends.encode())
        for rows in (self.points, self.features):
            digest.update(np.ascontiguousarray(rows))
        return digest.hexdigest()[:24]


class KeypointFile:
    """Keypoints of scans in a file that all processes of a machine share in memory."""

    def __init__(self, scans: Sequence[Keypoints], path: Path) -> None:
        self.path, self.voxel, self.columns = path, scans[0].voxel, 3 + scans[0].features.shape[1]
        self.starts = np.cumsum([0, *(len(scan.points) for scan in scans)])
        # Not by a memory map: a full disk would end the process
        with replacing(path) as temporary, temporary.open("wb") as file:
            for scan in scans:
                file.write(np.concatenate([scan.points, scan.features], axis=1))

    def __getitem__(self, scan: int) -> Keypoints:
        whole = np.memmap(self.path, np.float32, "r").reshape(-1, self.columns)
        rows = whole[self.starts[scan] : self.starts[scan + 1]]
        return Keypoints(np.asarray(rows[:, :3]), np.asarray(rows[:, 3:]), self.voxel)


@parallel.one_for_blas()
def screen(source: Keypoints, target: Keypoints, prior: Prior = ANY) -> int:
    """Number of matches that agree on one motion between two scans; 0 if fewer than four are mutual."""
    points, partners = mutual_matches(source, target)
    if len(points) < MIN_MATCHES:
        return 0
    distance = KEYPOINT_DISTANCE_VOXELS * source.voxel
    motions = consistent_motions(points, partners, distance, prior).astype(np.float32)
    return int(agreeing(motions, points, partners, distance).sum(1).max(initial=0))


def mutual_matches(source: Keypoints, target: Keypoints) -> tuple[np.ndarray, np.ndarray]:
    """Points (P, 3) and (P, 3), at most 1,000, whose features are each other's nearest."""
    queries = spread_rows(len(source.points), MAX_QUERIES)
    points, features = source.points[queries], source.features[queries]
    nearest = nearest_rows(features, target.features)
    mutual = nearest_rows(target.features[nearest], features) == np.arange(len(features))
    return points[mutual], target.points[nearest[mutual]]


def agreeing(motions: np.ndarray, points: np.ndarray, partners: np.ndarray, distance: float) -> np.ndarray:
    """True where motions (H, 4, 4) bring points (P, 3) within `distance` of their partners (P, 3): (H, P)."""
    return ((moved_by_each(motions, points) - partners) ** 2).sum(2) < distance**2


def nearest_rows(features: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each row of features (N, C) the nearest of others (M, C): (N,)."""
    return (features @ others.T - (others**2).sum(1) / 2).argmax(1)
