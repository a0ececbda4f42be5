"""A cloud at one voxel size: its surface with normals, and described keypoints."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from pcreg.arrays import Array, Index, like, namespace, take, to_host
from pcreg.features.base import Description, Descriptor, checked
from pcreg.geometry.normals import normals_of, towards
from pcreg.geometry.se3 import box
from pcreg.geometry.viewpoint import Viewpoint, estimated_viewpoint, is_within, viewpoint_around
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.geometry.voxel_size import Sample
from pcreg.runtime.errors import InputError

log = logging.getLogger(__name__)

MIN_POINTS = 30  # after downsampling; a motion between fewer may be chance
MIN_NEIGHBORS = 4  # within two voxels; noise has fewer, and so have the far ends of a LiDAR scan
NORMAL_RADIUS = 3.0  # voxels
MIRROR = np.array([-1.0, 1.0, 1.0])  # factors of the coordinates


@dataclass(frozen=True)
class DescribedCloud(Description):
    """A cloud at one voxel size: described points, and its surface for refinement."""

    rows: Array  # (M,) int64, of the described points in the cloud
    surface: Array  # (S, 3) float64, metres, a point per cell of a grid from the lower corner of the cloud
    normals: Array  # (S, 3) float64, of the surface, to the side of the viewpoint
    variation: Array  # (S,) float64, of the surface around each point: 0 on a plane, 1/3 at most
    viewpoint: Array  # (3,) float64 on the host, metres; or (S, 3), of each point of the surface
    viewpoint_known: bool  # True if it is stated, or proved by the cloud; else it is estimated

    @property
    def may_be_whole(self) -> bool:
        """True if the cloud may be an object seen from all sides: its estimated viewpoint lies within it."""
        estimated = not self.viewpoint_known and self.viewpoint.ndim == 1
        return estimated and is_within(self.viewpoint, self.surface)


def describe(
    points: Array,
    descriptor: Descriptor,
    name: str = "cloud",
    viewpoint: Viewpoint | None = None,
    *,
    around: bool = False,
) -> DescribedCloud:
    """Describe a cloud (N, 3) float64 at the voxel size of a descriptor.

    Without a `viewpoint` it is estimated, or if `around`, the cloud is an object seen from places around it.
    Raises InputError, with `name`, when too few points are left.
    """
    if len(points) == 0:
        raise InputError(f"{name}: holds no points; {MIN_POINTS} or more are needed")
    voxel = descriptor.voxel
    log.info("describe: %s, %d points, voxel %g m", name, len(points), voxel)
    surface_rows = downsample_and_filter(points, voxel, box(points)[0])
    surface = take(points, surface_rows)
    if len(surface) < MIN_POINTS:
        raise InputError(_too_few(name, points, len(surface), voxel))
    normals, variation = normals_of(surface, NORMAL_RADIUS * voxel)
    if viewpoint is None:
        estimate = viewpoint_around if around else estimated_viewpoint
        viewpoint = estimate(points, surface, normals, voxel)
    seen_from = viewpoint.of_rows(surface_rows)
    # Descriptors count cells from the origin: move a single sensor there
    is_single = viewpoint.position.ndim == 1
    origin = viewpoint.position if is_single else np.zeros(3)
    rows = downsample_and_filter(points, voxel, origin)
    if len(rows) < MIN_POINTS:  # these cells differ, and so do the isolated points
        raise InputError(_too_few(name, points, len(rows), voxel))
    origin = like(origin, points)
    keypoints = take(points, rows) - origin
    places = None if is_single else viewpoint.of_rows(rows) - origin
    found = checked(descriptor, descriptor.describe(keypoints, places))
    if len(found.points) == 0:
        raise InputError(f"{name}: {descriptor.name} describes no point of it; take another descriptor")
    # A descriptor with other cells keeps only some of the points: find their rows by position
    if len(found.points) != len(keypoints) or not (found.points == keypoints).all():
        rows = rows[Index(keypoints).query(found.points)[1]]
    return DescribedCloud(
        points=found.points + origin,
        features=found.features,
        rows=rows,
        surface=surface,
        normals=towards(seen_from, surface, normals),
        variation=variation,
        viewpoint=seen_from,
        viewpoint_known=viewpoint.known,
    )


def sampled_twice(cloud: DescribedCloud, descriptor: Descriptor) -> DescribedCloud:
    """Average the feature of each point with that of the nearest surface point.

    Surface and keypoints are two samples of the same cloud. A feature depends on the points that were sampled
    around it, and a mean of two depends less on them. The mean is scaled to the length of the first feature.
    """
    xp = namespace(cloud.surface)
    total = cloud.features + _surface_features(cloud, descriptor)
    length, of_total = (xp.linalg.vector_norm(each, axis=1) for each in (cloud.features, total))
    return replace(cloud, features=total * (length / xp.where(of_total > 0, of_total, 1))[:, None])


def mirrored(cloud: DescribedCloud, descriptor: Descriptor) -> DescribedCloud:
    """Flip the first axis, and describe the surface again if features depend on the reflection."""
    rows = {name: getattr(cloud, name) for name in ("points", "surface", "normals", "viewpoint")}
    flipped = replace(cloud, **{name: value * like(MIRROR, value) for name, value in rows.items()})
    if descriptor.reflection_invariant:
        return flipped
    return replace(flipped, features=_surface_features(flipped, descriptor))


def _surface_features(cloud: DescribedCloud, descriptor: Descriptor) -> Array:
    """Features (M, C) of the surface points that are nearest to the described points (M, 3)."""
    corner = like(box(cloud.surface)[0], cloud.surface)
    viewpoints = namespace(corner).zeros_like(cloud.surface) + like(cloud.viewpoint, corner) - corner
    again = checked(descriptor, descriptor.describe(cloud.surface - corner, viewpoints))
    return again.features[Index(again.points + corner).query(cloud.points)[1]]


def downsample_and_filter(points: Array, voxel: float, origin: np.ndarray) -> Array:
    """Rows (M,) int64 of a cloud (N, 3), one per cell counted from `origin` (3,), no isolated points.

    On a downsampled surface a point has a dozen neighbours within two voxels. A point with fewer than four is
    noise, and would count as an object in the free space of the other sensor.
    """
    rows = voxel_downsample(points, voxel, origin)
    kept = take(points, rows)
    return rows[have_neighbors(kept, MIN_NEIGHBORS, 2 * voxel)]


def have_neighbors(points: Array, count: int, radius: float) -> Array:
    """True (N,) for points (N, 3) with `count` others at a distance of `radius` metres or less."""
    bound = np.nextafter(radius, np.inf)  # an index finds points closer than its bound
    return namespace(points).isfinite(Index(points).kth_distance(points, count + 1, bound))


def _too_few(name: str, points: Array, left: int, voxel: float) -> str:
    points = to_host(points)
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    found = f"{name}: {left} of {len(points)} points left at voxel {voxel:g} m (extent {extent:.3g} m)"
    if len(points) < MIN_POINTS or extent == 0:
        return f"{found}, too few at any voxel size; a cloud needs {MIN_POINTS} different points"
    if _is_line(points):
        return f"{found}, all on a line; project degrees to metres, or name x, y, z if they are not first"
    suited = Sample.of(points, name).voxel()
    if len(downsample_and_filter(points, suited, box(points)[0])) < MIN_POINTS:
        remedy = "take a scan with more points"
    else:
        remedy = f"check its unit, or try a voxel of {suited:g} m"
    return f"{found}, {MIN_POINTS} with neighbours are needed; {remedy}"


def _is_line(points: np.ndarray) -> bool:
    """True if points (N, 3) spread a hundred times as far along a line as across it."""
    around = points - points.mean(0)
    across, along = np.linalg.eigvalsh(around.T @ around)[1:]
    return bool(across <= 1e-4 * along)
