"""The covariance of a refined motion.

The error of a motion T = T_target_source is a small motion x in the frame of the source, on the right: the
true motion is T exp(x), with x = (rotation, translation), in radians about the axes of that frame and in
metres along them. Order and side are those of GTSAM's Pose3, so that the covariance belongs to
BetweenFactorPose3(target, source).

Registration minimises squared residuals r = J x along normals. If residuals were
independent, the covariance would be sigma^2 (J^T J)^-1. But points of one surface share the bias of the
sensor and of the sampling. So residuals are summed up by blocks of space: (J^T J)^-1 (sum g g^T) (J^T J)^-1
with g = J^T r of a block (Liang and Zeger, 1986). Errors that all blocks share, such as drift within a fused
scan, do not show in the residuals: two factors, chosen on simulated scans, account for them.
"""

import numpy as np

from pcreg.arrays import to_host
from pcreg.geometry.se3 import adjoint, inverse, translation
from pcreg.registration.estimation.icp import plane_rows
from pcreg.registration.judge.overlap import Overlap

BLOCK_VOXELS = 5.0  # edge of a block
# Both chosen on simulated motions
SHARED_ERROR = 4.5  # ratio of the errors to those of independent blocks
COMMON_ERROR = 0.2  # error that a whole scan has in common, in RMS residuals
# Observability below which matches, and not residuals, determine a direction; noise of normals has 0.003
NOISE_OBSERVABILITY = 0.005
FREE_VOXELS = 2.0  # standard deviation of a direction that matches alone determine
FLOOR_VOXELS = 0.001  # least standard deviation in any direction: clouds may be copies


def covariance(overlap: Overlap, T_target_source: np.ndarray, voxel: float) -> np.ndarray:
    """Covariance (6, 6), positive definite, of a refined motion (4, 4) by the overlap under it.

    Surfaces have a point per `voxel` metres, and touch within that distance. Directions in which the overlap
    slides have standard deviations of about two voxels: of translation, or of the displacement that a
    rotation causes.
    """
    points, normals, residuals = map(to_host, (overlap.points, overlap.normals, overlap.offsets))
    # About the middle, with rotations as displacements in metres, so that all directions have one unit
    middle = points.mean(0) if len(points) else to_host(overlap.moved).mean(0)
    arms = points - middle
    radius = np.sqrt((arms**2).sum() / len(arms)) if len(arms) > 1 else voxel
    rows = plane_rows(arms / radius, normals)  # (K, 6), J
    blocks = _blocks(points, BLOCK_VOXELS * voxel)
    gradients = np.stack([np.bincount(blocks, column * residuals) for column in rows.T], axis=1)  # (B, 6)

    observability, directions = np.linalg.eigh(rows.T @ rows / max(len(rows), 1))
    damped = observability**2 + NOISE_OBSERVABILITY**2
    gain = (directions * (observability / damped)) @ directions.T / max(len(rows), 1)  # inverse of J^T J
    unseen = (directions * (NOISE_OBSERVABILITY**2 / damped)) @ directions.T
    found = SHARED_ERROR**2 * gain @ gradients.T @ gradients @ gain
    floor = COMMON_ERROR**2 * np.mean(residuals**2) if len(residuals) else 0.0
    found += (FREE_VOXELS * voxel) ** 2 * unseen @ unseen + (floor + (FLOOR_VOXELS * voxel) ** 2) * np.eye(6)
    # Convert to rotations in radians about the origin, and to the axes, of the source
    T_source_middle = inverse(T_target_source) @ translation(middle)
    to_source = adjoint(T_source_middle) @ np.diag([1 / radius] * 3 + [1.0] * 3)
    return to_source @ found @ to_source.T


def _blocks(points: np.ndarray, edge: float) -> np.ndarray:
    """Numbers (N,) of the blocks, cubes of that edge, that points (N, 3) lie in."""
    x, y, z = np.floor((points - points.min(0, initial=np.inf)) / edge).astype(np.int64).T
    # A single number per block: NumPy's unique is ten times slower with rows of three
    return np.unique((x * (y.max(initial=0) + 1) + y) * (z.max(initial=0) + 1) + z, return_inverse=True)[1]
