"""Outliers of a cloud: rows for "no return", and few points very far away.

Organised clouds have zeros or another fill value for "no return". Such rows and far points would determine
the size of the cloud's box, so both are left out before any length is computed.
"""

import numpy as np

from pcreg.geometry.se3 import box
from pcreg.geometry.voxel_size import middle_box, sampled
from pcreg.io.cloud import Cloud
from pcreg.runtime.errors import InputError

MAX_COORDINATE_METRES = 1e12  # the orbit of Saturn
MAX_DISTANCE_EXTENTS = 1000.0  # extents of the middle 90 %; a LiDAR scan reaches a few
MAX_OUTLIER_FRACTION = 0.05  # of the points; more of them would move the middle 90 %


def without_outliers(cloud: Cloud, name: str) -> Cloud:
    """Leave out outliers, which are counted in `dropped` and described in `notes`.

    - Rows of exact zeros, if there are two or more.
    - Rows equal to a corner of the cloud's box, such as -9999 -9999 -9999, or to its median, if they are more
      than 5 %. The median is that of a majority of equal rows, such as zeros that were moved.
    - Points further from the middle of the cloud than 1000 times its extent (voxel_size.extent), or beyond
      1e12 m, if they are at most 5 %.

    Equal rows stay if there are no others. Raises InputError, with `name`, if more lie beyond 1e12 m.
    """
    few = max(1, MAX_OUTLIER_FRACTION * len(cloud.points))
    repeated = np.median(sampled(cloud.points), axis=0) if len(cloud.points) else np.zeros(3)
    for fill, most in ((np.zeros(3), 1), *((each, few) for each in (*cloud.box, repeated))):
        points = cloud.points
        rows = np.flatnonzero(points[:, 0] == fill[0])
        rows = rows[(points[rows] == fill).all(1)]
        if most < len(rows) < len(points):
            kept = np.delete(np.arange(len(points)), rows)
            value = " ".join(f"{number:g}" for number in fill) if fill.any() else "zeros"
            cloud = cloud.select(kept, f"{len(rows)} rows of {value}, no return, are left out")
    far = _far(cloud, name)
    if far is None:
        return cloud
    note = f"{np.count_nonzero(far)} points are left out, {MAX_DISTANCE_EXTENTS:g} extents away or further"
    return cloud.select(np.flatnonzero(~far), note)


def _far(cloud: Cloud, name: str) -> np.ndarray | None:
    """True (N,) for points that are few and far from the others; None if there are none."""
    points = inside = cloud.points
    if len(points) == 0:
        return None
    beyond, corners = None, cloud.box
    if np.abs(corners).max() > MAX_COORDINATE_METRES:
        beyond = (np.abs(points) > MAX_COORDINATE_METRES).any(1)
        if beyond.mean() > MAX_OUTLIER_FRACTION:
            raise InputError(
                f"{name}: {np.count_nonzero(beyond)} of {len(points)} points have coordinates beyond "
                f"{MAX_COORDINATE_METRES:g} m; check the file's type of numbers and its columns, and --units"
            )
        inside = points[~beyond]
        corners = box(inside)
    low, high = middle_box(inside)
    max_distance = MAX_DISTANCE_EXTENTS * np.linalg.norm(high - low)
    lowest, highest = corners
    if max_distance == 0 or ((lowest >= low - max_distance) & (highest <= high + max_distance)).all():
        return beyond
    far = ((points < low - max_distance) | (points > high + max_distance)).any(1)
    return far if far.mean() <= MAX_OUTLIER_FRACTION else beyond
