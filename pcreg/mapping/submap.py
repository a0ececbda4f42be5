"""Scans, and submaps: placed scans as one cloud, to register and to verify.

A wrong motion may bring two scans together without a contradiction, but seldom a scan and a submap: then the
free space, the sides of surfaces and the matches of several scans count.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from pcreg.arrays import every_nth, to_host
from pcreg.geometry.se3 import box, inverse, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.mapping.graph import MAX_RESIDUAL_VOXELS
from pcreg.registration.batch import Work, name_of
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.matching.screening import Keypoints
from pcreg.runtime import cached_property, parallel

MAX_PROBES = 200
CELL_VOXELS = 4.0  # edge of the cells by which overlap is estimated
THINNED_VOXELS = 2.0  # edge of the cells in which a scan keeps one point for this


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

    @cached_property
    def thinned(self) -> np.ndarray:
        """Points (K, 3) of the surface, a fourth or less, by which overlap is estimated."""
        return self.surface[voxel_downsample(self.surface, THINNED_VOXELS * self.keypoints.voxel)]


def overlaps(scans: Sequence[Scan], poses: np.ndarray, component: np.ndarray, voxel: float) -> csr_array:
    """Estimated overlap of each two scans of one component, as a fraction of the smaller: (n, n)."""
    placed = [transform(pose, scan.thinned) for scan, pose in zip(scans, poses, strict=True)]
    cells = np.floor(np.concatenate(placed) / (CELL_VOXELS * voxel)).astype(np.int64)
    lowest, highest = box(cells)
    points = [len(each) for each in placed]
    inside = np.repeat(component, points), *(cells - lowest).T
    keys = np.ravel_multi_index(inside, (len(scans), *(highest - lowest + 1)))
    cells = [np.unique(own) for own in np.split(keys, np.cumsum(points)[:-1])]
    owner = np.repeat(np.arange(len(scans)), [len(cell) for cell in cells])
    _, column = np.unique(np.concatenate(cells), return_inverse=True)
    seen = coo_array((np.ones(len(owner)), (owner, column))).tocsr()
    shared = (seen @ seen.T).tocoo()
    sizes, (rows, columns) = shared.diagonal(), shared.coords
    other = rows != columns
    share = shared.data / np.minimum(sizes[rows], sizes[columns])
    return csr_array((share[other], (rows[other], columns[other])), shape=shared.shape)


def most_overlapping(shared: csr_array, scan: int, count: int, least: float) -> list[int]:
    """Up to `count` scans that overlap most with one, by `least` or more."""
    own = slice(shared.indptr[scan], shared.indptr[scan + 1])
    values, others = shared.data[own], shared.indices[own]
    best = np.argsort(-values, kind="stable")[:count]
    return others[best[values[best] >= least]].tolist()


@dataclass(frozen=True)
class Submap:
    """Some scans in the local frame of the first of them."""

    rows: tuple[int, ...]
    poses: np.ndarray  # (n, 4, 4), T_first_scan

    @staticmethod
    def of(rows: Sequence[int], poses: np.ndarray) -> "Submap":
        """The submap of the scans `rows`, placed by `poses` (N, 4, 4) of all scans."""
        return Submap(tuple(rows), inverse(poses[rows[0]]) @ poses[list(rows)])


@dataclass(frozen=True, eq=False)
class Question:
    """A motion between two submaps to verify or, without one, a search for motions."""

    source: Submap
    target: Submap
    T_target_source: np.ndarray | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The scans in whose frames the motion is."""
        return self.source.rows[0], self.target.rows[0]


@parallel.one_for_blas()
def answered(work: Work, paths: Sequence[str], voxel: float, question: Question) -> Any:
    """Answer a question about scans at `paths`: a verdict or, for a search, motions with probabilities."""
    scale = work.registrar.at(voxel)
    descriptor, corners, whole = scale.descriptor, [], []
    for submap in (question.source, question.target):
        clouds = [work.cloud(paths[row]) for row in submap.rows]
        corners.append(clouds[0].frame.corner)
        described = [cloud.at(descriptor).on("cpu") for cloud in clouds]
        whole.append(fused(described, submap.poses, voxel).on(descriptor.device))
    scale = replace(scale, prior=work.prior.between(*corners))
    if question.T_target_source is None:
        return [(each.T_target_source, each.probability) for each in scale.hypotheses(*whole, seed=work.seed)]
    verdict = scale.verify(*whole, question.T_target_source, MAX_RESIDUAL_VOXELS * voxel)
    return {key: getattr(verdict, key) for key in ("confidence", "reason", "T_target_source", "covariance")}


def name_on_record(work: Work, paths: Sequence[str], voxel: float, question: Question) -> str:
    """The name of a question by all that its answer depends on, except the settings of the run."""
    scans = [paths[row] for row in (*question.source.rows, *question.target.rows)]
    motions = question.source.poses, question.target.poses, question.T_target_source
    exact = [np.array(T).tolist() for T in motions]  # None stays None
    depends = name_of(scans), work.stamp(scans), exact, voxel, MAX_RESIDUAL_VOXELS
    return f"submaps: {hashlib.sha256(repr(depends).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}"


def fused(clouds: Sequence[DescribedCloud], poses: np.ndarray, voxel: float) -> DescribedCloud:
    """Described clouds, on the host, moved by `poses` (n, 4, 4), as one with a point per voxel."""
    placed = list(zip(poses, clouds, strict=True))
    points = np.concatenate([transform(T, cloud.points) for T, cloud in placed])
    surface = np.concatenate([transform(T, cloud.surface) for T, cloud in placed])
    kept, kept_surface = (np.sort(voxel_downsample(each, voxel)) for each in (points, surface))
    viewpoints = [
        np.broadcast_to(transform(T, np.atleast_2d(cloud.viewpoint)), cloud.surface.shape)
        for T, cloud in placed
    ]
    return DescribedCloud(
        points=points[kept],
        features=np.concatenate([cloud.features for cloud in clouds])[kept],
        rows=np.concatenate([cloud.rows for cloud in clouds])[kept],
        surface=surface[kept_surface],
        normals=np.concatenate([cloud.normals @ T[:3, :3].T for T, cloud in placed])[kept_surface],
        variation=np.concatenate([cloud.variation for cloud in clouds])[kept_surface],
        viewpoint=np.concatenate(viewpoints)[kept_surface],
        viewpoint_known=all(cloud.viewpoint_known for cloud in clouds),
    )
