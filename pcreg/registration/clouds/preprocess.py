"""A cloud at one voxel size: its downsampled surface with normals, and described keypoints."""

from dataclasses import dataclass, replace

import numpy as np

from pcreg.features.base import Description, Descriptor
from pcreg.geometry.normals import towards
from pcreg.geometry.viewpoint import Viewpoint, estimated_viewpoint
from pcreg.registration.backend import CPU, Backend
from pcreg.registration.clouds.local_frame import MIRROR, LocalPoints
from pcreg.runtime.errors import InputError

MIN_POINTS = 30  # after downsampling; a motion between fewer may be chance
MIN_NEIGHBORS = 4  # within two voxels; noise has fewer, and so have the far ends of a LiDAR scan
NORMAL_RADIUS = 3.0  # voxels


@dataclass(frozen=True)
class DownsampledCloud:
    """A cloud at one voxel size, before it is described."""

    surface: np.ndarray  # (S, 3) float64, metres, a point per cell, counted from the corner of the cloud
    normals: np.ndarray  # (S, 3) float64, of the surface, to the side of the viewpoint
    viewpoint: np.ndarray  # (3,) float64, metres; or (S, 3), of each point of the surface
    viewpoint_known: np.ndarray  # () bool: a sensor stood there; else it is estimated
    origin: np.ndarray  # (3,) float64, metres, from which the cells of the keypoints are counted
    keypoints: np.ndarray  # (K, 3) float64, metres, to describe: a point per cell
    keypoint_viewpoints: np.ndarray  # (K, 3) float64, metres
    rows: np.ndarray  # (K,) int64, which rows of the cloud the keypoints are


@dataclass(frozen=True)
class DescribedCloud(Description):
    """A cloud at one voxel size: described points, and its surface for refinement."""

    rows: np.ndarray  # (M,) int64, which rows of the cloud the described points are
    surface: np.ndarray  # this and what follows as in DownsampledCloud
    normals: np.ndarray
    viewpoint: np.ndarray
    viewpoint_known: np.ndarray

    @property
    def seen_from(self) -> Viewpoint:
        """The viewpoint that the cloud was described with."""
        return Viewpoint(self.viewpoint, bool(self.viewpoint_known))

    def mirrored(self) -> "DescribedCloud":
        """The cloud with the first axis flipped, by a descriptor that is invariant to reflection."""
        flipped = {
            name: getattr(self, name) * MIRROR for name in ("points", "surface", "normals", "viewpoint")
        }
        return replace(self, features=self.features_in_place, **flipped)


def downsample(
    points: LocalPoints,
    voxel: float,
    name: str = "cloud",
    viewpoint: Viewpoint | None = None,
    backend: Backend = CPU,
) -> DownsampledCloud:
    """The cloud (N, 3) float64 at a voxel size in metres, `name` being what an error calls it.

    Without a `viewpoint` it is estimated. Raises InputError for rows that are no points, and when too few are
    left at this voxel size.
    """
    if len(np.shape(points)) != 2 or np.shape(points)[1] != 3:
        raise InputError(f"{name}: shape {np.shape(points)}; pass rows x y z")
    if len(points) == 0:
        raise InputError(f"{name}: holds no points; {MIN_POINTS} or more are needed")
    corners = backend.box(points)
    if not np.isfinite(corners).all():
        raise InputError(f"{name}: values that are not finite; pass finite rows x y z")
    surface_rows = downsample_and_filter(points, voxel, corners[0], backend)
    surface = np.asarray(points.take(surface_rows, axis=0))
    if len(surface) < MIN_POINTS:
        raise InputError(f"{name}: {_too_few(points, len(surface), voxel)}")
    normals = backend.normals_of(surface, NORMAL_RADIUS * voxel)
    chosen = viewpoint or estimated_viewpoint(
        points, surface, normals, voxel, backend.view, backend.spacing_index
    )
    seen_from = chosen.of_rows(surface_rows)
    normals = towards(seen_from, surface, normals)
    origin = chosen.position if chosen.position.ndim == 1 else np.zeros(3)
    rows = downsample_and_filter(points, voxel, origin, backend)
    if len(rows) < MIN_POINTS:  # the cells differ, and with them the isolated points
        raise InputError(f"{name}: {_too_few(points, len(rows), voxel)}")
    keypoint_viewpoints = np.broadcast_to(chosen.of_rows(rows), (len(rows), 3))
    known = np.array(chosen.known)
    return DownsampledCloud(
        surface=surface,
        normals=normals,
        viewpoint=seen_from,
        viewpoint_known=known,
        origin=origin,
        keypoints=np.asarray(points.take(rows, axis=0)),
        keypoint_viewpoints=keypoint_viewpoints,
        rows=rows,
    )


def describe(cloud: DownsampledCloud, descriptor: Descriptor, backend: Backend = CPU) -> DescribedCloud:
    """The downsampled cloud with descriptors of its keypoints."""
    local = cloud.keypoints - cloud.origin  # cells of descriptors are counted from zero, too
    is_seen_from_zero = cloud.viewpoint.ndim == 1  # as descriptors take it to be
    found = descriptor.describe(
        local, None if is_seen_from_zero else cloud.keypoint_viewpoints - cloud.origin
    )
    rows = cloud.rows
    if not np.array_equal(found.points, local):  # cells that are counted alike keep all
        rows = rows[backend.index(local).query(found.points)[1]]  # exact: they are rows of it
    return DescribedCloud(
        found.points + cloud.origin,
        found.features_in_place,
        rows,
        cloud.surface,
        cloud.normals,
        cloud.viewpoint,
        cloud.viewpoint_known,
    )


def downsample_and_filter(
    points: LocalPoints, voxel: float, origin: np.ndarray, backend: Backend = CPU
) -> np.ndarray:
    """Rows (M,) int64 of the cloud (N, 3), one per cell counted from `origin` (3,), no isolated points.

    On a downsampled surface a point has a dozen others within two voxels. One with fewer than four is noise,
    which would count as an object in the free space of the other sensor.
    """
    rows = backend.voxel_downsample(points, voxel, origin)
    return rows[backend.have_neighbors(points.take(rows, axis=0), MIN_NEIGHBORS, 2 * voxel)]


def _too_few(local: LocalPoints, left: int, voxel: float) -> str:
    points = np.asarray(local)
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    found = f"{left} of {len(points)} points left at voxel {voxel:g} m (extent {extent:.3g} m)"
    if len(points) < MIN_POINTS or extent == 0:
        return f"{found}, too few at any voxel size; a cloud needs {MIN_POINTS} different points"
    if _is_line(points):
        return f"{found}: they lie on a line, which has no shape at any voxel size"
    return f"{found}, {MIN_POINTS} are needed; try a voxel of {extent / 100:.2g} m"


def _is_line(points: np.ndarray) -> bool:
    """Whether points (N, 3) spread a hundred times as far along a line as across it."""
    around = points - points.mean(0)
    across, along = np.linalg.eigvalsh(around.T @ around)[1:]
    return bool(across <= 1e-4 * along)
