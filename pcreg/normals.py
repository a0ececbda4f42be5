"""Normals of the surface that points were taken from."""

import numpy as np

NEIGHBORS = 30


def normals_of(points: np.ndarray, radius: float, viewpoint: np.ndarray) -> np.ndarray:
    """Unit normals (N, 3) of points (N, 3), from up to 30 neighbours within `radius` metres.

    They point to the side of `viewpoint` (3,), from where the surface was seen.
    """
    import open3d

    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points - viewpoint))
    cloud.estimate_normals(open3d.geometry.KDTreeSearchParamHybrid(radius, NEIGHBORS))
    cloud.orient_normals_towards_camera_location(np.zeros(3))
    return np.asarray(cloud.normals)
