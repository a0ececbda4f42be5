"""What registration keeps of a cloud: described points, and its surface."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from pcreg import threads
from pcreg.descriptors import Description, Descriptor
from pcreg.errors import InputError
from pcreg.geometry import box
from pcreg.normals import normals_of
from pcreg.scale import middle_box
from pcreg.thinning import thin

MINIMUM_POINTS = 30  # after thinning; fewer carry no shape that could be told from chance
MINIMUM_NEIGHBORS = 4  # within two voxels; most noise has fewer, and so have the far ends of a LiDAR scan
NORMAL_RADIUS = 3.0  # voxels
SENSOR_REACH = 10.0  # cloud extents; see `viewpoint`


@dataclass(frozen=True)
class Shape(Description):
    """Described points, as a descriptor thinned them, and the same surface thinned for refinement."""

    surface: np.ndarray  # (S, 3) float64, metres, on cells that move with the cloud wherever its origin is
    normals: np.ndarray  # (S, 3) float64, of the surface, to the side that it was seen from


def shape_of(points: np.ndarray, descriptor: Descriptor, name: str = "cloud") -> Shape:
    """The shape of the cloud (N, 3) float64, `name` being what an error calls it.

    Raises InputError for rows that are no points, and when too few are left at this voxel size.
    """
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise InputError(f"{name}: shape {points.shape} or values not finite; pass finite rows x y z")
    if len(points) == 0:
        raise InputError(f"{name}: holds no points; {MINIMUM_POINTS} or more are needed")
    origin = viewpoint(points)
    local = descriptor.describe(solid(points, descriptor.voxel, origin) - origin)
    surface = solid(points, descriptor.voxel, box(points)[0])
    left = min(len(local.points), len(surface))  # of other cells, so others are left out as loners
    if left < MINIMUM_POINTS:
        raise InputError(f"{name}: {_too_few(points, left, descriptor.voxel)}")
    normals = normals_of(surface, NORMAL_RADIUS * descriptor.voxel, origin)
    return Shape(local.points + origin, local.features, surface, normals)


def solid(points: np.ndarray, voxel: float, origin: np.ndarray) -> np.ndarray:
    """The cloud (N, 3) thinned to a point per cell, counted from `origin` (3,), without loners: (M, 3).

    On a thinned surface a point has a dozen others within two voxels. One with fewer than four is noise:
    it would be taken for a thing that hangs where the other sensor saw nothing.
    """
    thinned = points[thin(points, voxel, origin)]
    around = cKDTree(thinned).query_ball_point(
        thinned, 2 * voxel, return_length=True, workers=threads.cores_for(len(thinned))
    )
    return thinned[around - 1 >= MINIMUM_NEIGHBORS]


def viewpoint(points: np.ndarray) -> np.ndarray:
    """The place (3,) that becomes the origin before the cloud (N, 3) is described.

    Descriptors may take the origin for the sensor: normals point to it. It stays where it is when a
    sensor there could have seen the cloud, that is within 10 extents of its middle. Further away it
    is the origin of a map (UTM, a survey grid) and says nothing about the sensor; the middle of the
    cloud serves instead, which for rooms and streets lies on the open side of most surfaces. Extent
    and middle are those of the middle 90 %: a few rows of zeros in map coordinates are no sensor.
    """
    low, high = middle_box(points)
    middle = (low + high) / 2
    if np.linalg.norm(middle) <= SENSOR_REACH * np.linalg.norm(high - low):
        return np.zeros(3)
    return middle


def _too_few(points: np.ndarray, left: int, voxel: float) -> str:
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    found = f"{left} of {len(points)} points left at voxel {voxel:g} m (extent {extent:.3g} m)"
    if len(points) < MINIMUM_POINTS or extent == 0:
        return f"{found}, too few at any voxel size; a cloud needs {MINIMUM_POINTS} points apart"
    if _is_line(points):
        return f"{found}: they lie on a line, which has no shape at any voxel size"
    return f"{found}, {MINIMUM_POINTS} are needed; try a voxel of {extent / 100:.2g} m"


def _is_line(points: np.ndarray) -> bool:
    """Whether points (N, 3) spread a hundred times as far along a line as across it."""
    around = points - points.mean(0)
    across, along = np.linalg.eigvalsh(around.T @ around)[1:]
    return bool(across <= 1e-4 * along)
