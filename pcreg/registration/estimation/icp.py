"""Refinement of a motion that is nearly right: iterated closest points, point to plane.

The start is kept where it scores clearly better than the result. Open3D's loop adds its sums up in parallel,
in an order that changes from run to run.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.arrays import Array, Index, every_nth, is_on_host, like, namespace, take, to_host
from pcreg.geometry.se3 import dot, enlargement, lengths, se3, transform

MAX_ITERATIONS = 30  # of either stage; right motions take 5 to 15, wrong ones do not converge
MAX_COARSE_POINTS = 5_000  # of the source in the first stage, which need not be exact
# Least step, in distances: below it partners at the edge come and go, and the loop need not end
CONVERGENCE_RATIO = 1e-3
# Share of the best score by which a later motion may fall short: sampling changes scores as much
SCORE_TOLERANCE = 0.01
MAX_CONDITION = 1e8  # of the equations; directions that are determined less are left alone

# Between partners of similarities, voxels, in each iteration: at the end few, as at the edges of the overlap
# points have partners to the inside alone. They shrink simulated rooms by 7 % at 2 voxels, by 1 % at 0.75
SIMILARITY_DISTANCES = (1.5,) * 10 + (0.75,) * 6


@dataclass(frozen=True)
class Refinement:
    """A refined motion and its fit."""

    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of source points with a target point within the distance
    rmse: float  # metres, over those points; 0 if there are none
    distance: float  # metres


def refine(
    source: Array,
    target: Array,
    normals: Array,
    T_target_source: np.ndarray,
    distance: float,
    iterations: int = MAX_ITERATIONS,
) -> Refinement:
    """Refine T_target_source (4, 4) on source (N, 3) and target (M, 3), M >= 1, spaced about `distance`.

    Point-to-plane ICP (Chen and Medioni, 1992) with the `normals` (M, 3) of the target, of either sign:
    first with partners up to 2 x `distance`, for a rough start, then up to 1 x, in up to `iterations` each.
    A motion scores max(0, 1 - (d / distance)^2) summed over the source points, d being the distance to the
    nearest target point (MSAC; Torr and Zisserman, 2000). The result is the last of the start and the ends of
    both stages that scores about as well as the best.
    """
    xp = namespace(target)
    origin = to_host(xp.mean(target, axis=0))  # rotations about a far origin lose digits
    to_work, to_target = se3(np.eye(3), -origin), se3(np.eye(3), origin)
    start = to_work @ T_target_source
    source, planes = transform(start, source), Planes(target - like(origin, target), normals)
    T, motions = np.eye(4), [np.eye(4)]
    for some, max_distance in ((every_nth(source, MAX_COARSE_POINTS), 2 * distance), (source, distance)):
        T = point_to_plane(some, planes, T, max_distance, CONVERGENCE_RATIO * distance, iterations)
        motions.append(T)
    fits = np.array([_fit(transform(T, source), planes.index, distance) for T in motions])
    best = np.flatnonzero(fits[:, 0] >= (1 - SCORE_TOLERANCE) * fits[:, 0].max())[-1]
    _, near, rmse = fits[best].tolist()
    return Refinement(to_target @ motions[best] @ start, near / max(len(source), 1), rmse, distance)


def refine_similarity(
    source: Array, target: Array, normals: Array, T_target_source: np.ndarray, voxel: float
) -> np.ndarray:
    """The similarity (4, 4) near T_target_source (4, 4) that lays source (N, 3) on target (M, 3).

    Point-to-plane ICP that also enlarges. Both clouds have a point per `voxel`; normals (M, 3) of the target
    are of either sign. Returns the start where too few points touch.
    """
    planes, T = Planes(target, normals), T_target_source
    for voxels in SIMILARITY_DISTANCES:
        points, partners, upright = planes.partners(transform(T, source), voxels * voxel)
        if len(points) < 7:
            return T_target_source
        xp = namespace(points)
        middle = xp.mean(points, axis=0)
        arms = points - middle
        rows = xp.concat([plane_rows(arms, upright), dot(arms, upright)[:, None]], axis=1)
        *twist, growth = _solution(_sums(rows, dot(partners - points, upright)))
        middle = to_host(middle)
        step = _motion(np.array(twist)) @ enlargement(1 + growth)
        T = se3(np.eye(3), middle) @ step @ se3(np.eye(3), -middle) @ T
    return T


class Planes:
    """Points (M, 3) with normals (M, 3), and an index of the points."""

    def __init__(self, points: Array, normals: Array) -> None:
        self.points, self.normals, self.index = points, normals, Index(points)

    def partners(self, moved: Array, max_distance: float) -> tuple[Array, Array, Array]:
        """Moved points (K, 3) closer than `max_distance` to a point, nearest points, and their normals."""
        xp = namespace(moved)
        distance, partner = self.index.query(moved, max_distance=max_distance)
        near = xp.nonzero(distance < np.inf)[0]
        partner = take(partner, near)
        there = (take(rows, partner) for rows in (self.points, self.normals))
        return take(moved, near), *there

    def step_sums(self, source: Array, T: np.ndarray, max_distance: float) -> np.ndarray:
        """Sums (6, 7) of J^T J, J^T r over partners of source (N, 3) moved by T; J is `plane_rows`."""
        if not is_on_host(source) and source.is_cuda:
            from pcreg.kernels.triton.points.nearest import step_sums

            sums = step_sums(source, self.points, self.normals, like(T, source), max_distance)
            return to_host(sums)[:6]
        points, partners, normals = self.partners(transform(T, source), max_distance)
        return _sums(plane_rows(points, normals), dot(partners - points, normals))


def plane_rows(points: Array, normals: Array) -> Array:
    """Jacobian (K, 6), rotation first, of distances from points (K, 3) to planes with normals (K, 3)."""
    (x, y, z), (nx, ny, nz) = points.T, normals.T
    columns = [y * nz - z * ny, z * nx - x * nz, x * ny - y * nx, nx, ny, nz]
    return namespace(points).stack(columns, axis=1)


def point_to_plane(
    source: Array, planes: Planes, T: np.ndarray, max_distance: float, min_step: float, iterations: int
) -> np.ndarray:
    """Iterate from T (4, 4), partners being within `max_distance`, until a step is below `min_step`."""
    radius = float(namespace(source).mean(lengths(transform(T, source))))  # takes radians to metres
    for _ in range(iterations):
        twist = _solution(planes.step_sums(source, T, max_distance))
        T = _motion(twist) @ T
        if radius * np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) < min_step:
            break
    return T


def _sums(rows: Array, offsets: Array) -> np.ndarray:
    """The normal equations (C, C + 1) of rows (K, C) and offsets (K,), with one wait for the device."""
    return to_host(namespace(rows).concat([rows.T @ rows, (rows.T @ offsets)[:, None]], axis=1))


def _solution(sums: np.ndarray) -> np.ndarray:
    """The solution (C,) of normal equations (C, C + 1); what surfaces slide along stays 0."""
    return np.linalg.lstsq(sums[:, :-1], sums[:, -1], rcond=1 / MAX_CONDITION)[0]


def _motion(twist: np.ndarray) -> np.ndarray:
    """The motion (4, 4) of a rotation vector and a translation (6,)."""
    return se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:])


def _fit(moved: Array, index: Index, distance: float) -> tuple[float, int, float]:
    """The score of moved source points (N, 3), the number near the target, and their RMS distance."""
    found = to_host(index.query(moved, max_distance=distance)[0])
    near = found[np.isfinite(found)]
    rms = float(np.sqrt(np.mean(near**2))) if len(near) else 0.0
    return (1 - (near / distance) ** 2).sum(), len(near), rms
