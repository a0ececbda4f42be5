"""A map in which scans are located: overlapping regions, each described once.

A region is registered as any other cloud. It fills about as many cells as a scan, and its viewpoint is
estimated unless the map states one.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from pcreg.arrays import to_host
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.matching.global_descriptor import GlobalDescriptor
from pcreg.registration.matching.prior import Prior
from pcreg.registration.matching.screening import Keypoints, screen
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import cached_property, parallel
from pcreg.runtime.errors import InputError, attempted

# Files of a map's points: with the colour of their scan, and with the viewpoint from which each was seen
COLORED, VIEWED = "map.ply", "map.npz"
STORED_VOXELS = 0.5  # edge of the cells of which a point is kept
RADIUS_VOXELS = 100.0  # of a region, in which a scan of 15,000 cells fits; scans of one voxel size share them
SPACING = 0.75  # radii between two regions, at least
MIN_FILLED = 0.1  # of the points of the fullest region; regions with fewer are not described
SCREENED = 12  # regions, those with the most similar global descriptors
PROPOSED = 3  # of the screened ones, those with the most agreeing matches


def map_file(path: str | Path) -> Path:
    """The file of a map: `path`, or the one in a folder of `pcreg map`; InputError if that holds none."""
    path = Path(os.path.expanduser(path))
    if not os.path.isdir(path):  # Path.is_dir raises without permission to search the parent folder
        return path
    for name in (VIEWED, COLORED):
        if os.path.isfile(path / name):
            return path / name
    raise InputError(f"{path}: holds no map.ply; name a file, or a folder that `pcreg map` wrote")


@dataclass(frozen=True)
class Regions:
    """Regions of a map at one scale, at least one."""

    clouds: list[PreparedCloud]
    keypoints: list[Keypoints]
    descriptor: GlobalDescriptor  # of all of them

    def proposed(self, scan: Keypoints, priors: Sequence[Prior]) -> list[tuple[PreparedCloud, int]]:
        """Up to three regions in which the scan may lie, best first, and how many matches agree in each.

        The `priors` hold between the scan and each region; regions that they exclude come last.
        """
        priors = [prior.about(scan.points) for prior in priors]
        boxes = [cloud.cloud.box - cloud.frame.corner for cloud in self.clouds]
        radius = np.linalg.norm(np.ptp(scan.points, axis=0)) / 2
        excluded = [not prior.reaches(box, radius) for prior, box in zip(priors, boxes, strict=True)]
        similarity = self.descriptor.whole @ self.descriptor.describe(scan)
        alike = np.lexsort((-similarity, excluded))[:SCREENED]
        inliers = parallel.each(lambda row: screen(scan, self.keypoints[row], priors[row]), alike)
        best = np.argsort(-np.array(inliers), kind="stable")[:PROPOSED]
        return [(self.clouds[alike[n]], inliers[n]) for n in best]


class PreparedMap(PreparedCloud):
    """A map for any number of scans, with regions that are computed once per scale.

    The viewpoint is stated, or estimated for each region.
    """

    @cached_property
    def _regions(self) -> dict[tuple[object, ...], Regions]:
        return {}

    def regions(self, scale: SingleScaleRegistrar) -> Regions:
        """Regions for scans at that scale; InputError if all have too few points."""
        descriptor = scale.descriptor
        key = (descriptor.name, descriptor.fingerprint, descriptor.device, descriptor.voxel)
        if key in self._regions:
            return self._regions[key]
        clouds = self._clouds(scale.voxel)
        found = parallel.each(
            lambda cloud: attempted(lambda: Keypoints.of(cloud.at(descriptor), scale.voxel))[0],
            clouds,
            descriptor.device,
        )
        clouds = [cloud for cloud, keypoints in zip(clouds, found, strict=True) if keypoints]
        keypoints = [each for each in found if each]
        if not clouds:
            raise InputError(
                f"{self.name or 'map'}: too few points for a scan with voxel {scale.voxel:g} m; "
                "check the units of both, or give a denser map or a larger voxel"
            )
        return self._regions.setdefault(key, Regions(clouds, keypoints, GlobalDescriptor.learned(keypoints)))

    def _clouds(self, voxel: float) -> list[PreparedCloud]:
        """Downsampled parts of the map around centres that cover it; their rows are the map's."""
        points, radius = to_host(self.points), RADIUS_VOXELS * voxel
        rows = np.sort(voxel_downsample(points, STORED_VOXELS * voxel))
        tree = cKDTree(points[rows])
        within = [np.sort(tree.query_ball_point(at, radius)) for at in _centres(points[rows], radius)]
        least = MIN_FILLED * max(map(len, within), default=0)
        whole = replace(self.cloud, viewpoint=self.stated)
        parts = [whole.select(rows[inside]) for inside in within if len(inside) >= least]
        return [PreparedCloud(part, "auto", self.name, device=self.device) for part in parts]


def _centres(points: np.ndarray, radius: float) -> np.ndarray:
    """Places (P, 3) among points (N, 3), three quarters of a radius apart or more, the fullest first."""
    spacing = SPACING * radius
    _, cell, counts = np.unique(
        np.floor(points / (spacing / 2)).astype(np.int64), axis=0, return_inverse=True, return_counts=True
    )
    means = np.stack([np.bincount(cell.ravel(), axis) for axis in points.T], axis=1) / counts[:, None]
    tree = cKDTree(means)
    left, chosen = np.ones(len(means), dtype=bool), []
    for row in np.argsort(-counts, kind="stable"):
        if left[row]:
            chosen.append(means[row])
            left[tree.query_ball_point(means[row], spacing)] = False
    return np.array(chosen)
