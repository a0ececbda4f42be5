"""Refinement of a nearly right motion by point-to-plane ICP.

The start is kept if it scores clearly better than the result. Open3D's ICP does not repeat: it adds up sums
in parallel, in an order that changes from run to run.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.arrays import Array, Index, every_nth, is_on_host, like, namespace, take, to_host
from pcreg.geometry.se3 import dot, enlargement, lengths, moved_by_each, se3, transform, translation

MAX_ITERATIONS = 30  # of either stage; right motions take 5 to 15, wrong ones do not converge
MAX_COARSE_POINTS = 5_000  # of the source in the first stage, which need not be exact
# Least step, in distances: below it partners at the largest distance come and go, and ICP may not end
CONVERGENCE_RATIO = 1e-3
# Fraction of the best score by which a later motion may score less: sampling changes scores as much
SCORE_TOLERANCE = 0.01
MAX_CONDITION = 1e8  # of the equations; directions that are determined less get no step
MIN_ARM, MAX_ARM = 1e-3, 1e3  # metres, of rotations; between these the metre suits the equations as unit

# Largest distance of partners, voxels, in each iteration. It ends small: beyond the overlap points have
# partners on one side alone, which shrinks simulated rooms by 7 % at 2 voxels, by 1 % at 0.75
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
    motions: np.ndarray,
    distance: float,
    iterations: int = MAX_ITERATIONS,
) -> list[Refinement]:
    """Refine motions (H, 4, 4) of source (N, 3) to target (M, 3), M >= 1, spaced about `distance`.

    Point-to-plane ICP (Chen and Medioni, 1992) with the `normals` (M, 3) of the target, of either sign, in
    two stages of up to `iterations`: partners are up to 2 x `distance` apart, for a rough start, then 1 x. A
    motion scores max(0, 1 - (d / distance)^2) summed over the source points, d being the distance to the
    nearest target point (MSAC; Torr and Zisserman, 2000). Of the start and the results of both stages, the
    last one that scores about as well as the best is returned.
    """
    xp = namespace(target)
    origin = to_host(xp.mean(target, axis=0))  # rotations about a far origin lose digits
    to_work, to_target = translation(-origin), translation(origin)
    starts, planes = to_work @ motions, Planes(target - like(origin, target), normals)
    some, moved = moved_by_each(starts, every_nth(source, MAX_COARSE_POINTS)), moved_by_each(starts, source)
    still, min_step = np.broadcast_to(np.eye(4), starts.shape), CONVERGENCE_RATIO * distance
    coarse = point_to_plane(some, planes, still, 2 * distance, min_step, iterations)
    fine = point_to_plane(moved, planes, coarse, distance, min_step, iterations)
    found = []
    for start, points, steps in zip(starts, moved, np.stack([still, coarse, fine], axis=1), strict=True):
        fits = _fits(moved_by_each(steps, points), planes.index, distance)
        best = np.flatnonzero(fits[:, 0] >= (1 - SCORE_TOLERANCE) * fits[:, 0].max())[-1]
        _, near, rmse = fits[best].tolist()
        T = to_target @ steps[best] @ start
        found.append(Refinement(T, near / max(len(source), 1), rmse, distance))
    return found


def refine_similarity(
    source: Array, target: Array, normals: Array, T_target_source: np.ndarray, voxel: float
) -> np.ndarray:
    """The similarity (4, 4) near T_target_source that lays source (N, 3) on target (M, 3).

    Point-to-plane ICP that also enlarges. Both clouds have a point per `voxel`; normals (M, 3) of the target
    are of either sign. Returns the start where too few points touch.
    """
    planes, T = Planes(target, normals), T_target_source
    for voxels in SIMILARITY_DISTANCES:
        points, partners, upright = planes.partners(transform(T, source), voxels * voxel)
        if len(points) < 7:  # unknowns of a similarity
            return T_target_source
        xp = namespace(points)
        middle = xp.mean(points, axis=0)
        arms = points - middle
        rows = xp.concat([plane_rows(arms, upright), dot(arms, upright)[:, None]], axis=1)
        *twist, growth = _solution(_sums(rows, dot(partners - points, upright)))
        middle = to_host(middle)
        step = _motion(np.array(twist)) @ enlargement(1 + growth)
        T = translation(middle) @ step @ translation(-middle) @ T
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

    def step_sums(self, sources: Array, motions: np.ndarray, max_distance: float) -> np.ndarray:
        """Sums (H, 6, 7) of J^T J, J^T r over partners of sources (H, N, 3), each moved by its motion.

        The motions are (H, 4, 4); J is `plane_rows`.
        """
        if not is_on_host(sources) and sources.is_cuda:
            from pcreg.kernels.triton.points.nearest import step_sums

            sums = step_sums(sources, self.points, self.normals, like(motions, sources), max_distance)
            return to_host(sums)[:, :6]
        found = []
        for source, T in zip(sources, motions, strict=True):
            points, partners, normals = self.partners(transform(T, source), max_distance)
            found.append(_sums(plane_rows(points, normals), dot(partners - points, normals)))
        return np.stack(found)


def plane_rows(points: Array, normals: Array) -> Array:
    """Jacobian (K, 6), rotation first, of distances from points (K, 3) to planes with normals (K, 3)."""
    (x, y, z), (nx, ny, nz) = points.T, normals.T
    columns = [y * nz - z * ny, z * nx - x * nz, x * ny - y * nx, nx, ny, nz]
    return namespace(points).stack(columns, axis=1)


def point_to_plane(
    sources: Array, planes: Planes, motions: np.ndarray, max_distance: float, min_step: float, iterations: int
) -> np.ndarray:
    """Iterate ICP of each of sources (H, N, 3) from its motion until a step is below `min_step` metres.

    Partners are within `max_distance` metres. Returns the last motions (H, 4, 4). On a GPU one launch
    computes a step of all sources.
    """
    T, moving = motions.copy(), np.arange(len(motions))
    # Mean distances from the origin, by which rotations in radians become metres
    radii = [float(namespace(s).mean(lengths(transform(m, s)))) for s, m in zip(sources, T, strict=True)]
    for _ in range(iterations):
        if len(moving) == 0:
            break
        some = sources if len(moving) == len(T) else take(sources, like(moving, sources))
        steps = []
        for h, sums in zip(moving, planes.step_sums(some, T[moving], max_distance), strict=True):
            twist = _solution(sums)
            T[h] = _motion(twist) @ T[h]
            steps.append(radii[h] * np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]))
        moving = moving[np.array(steps) >= min_step]
    return T


def _sums(rows: Array, offsets: Array) -> np.ndarray:
    """The normal equations (C, C + 1) of rows (K, C) and offsets (K,), with one wait for the device."""
    return to_host(namespace(rows).concat([rows.T @ rows, (rows.T @ offsets)[:, None]], axis=1))


def _solution(sums: np.ndarray) -> np.ndarray:
    """Solve normal equations (C, C + 1) for a step (C,), 0 in directions that they do not determine.

    Entries of rotations and growth are proportional to the square of their arms. In clouds of kilometres, and
    of less than a millimetre, this alone exceeds MAX_CONDITION: there the mean arm is the unit.
    """
    units, turns, slides = np.ones(len(sums)), np.trace(sums[:3, :3]), np.trace(sums[3:6, 3:6])
    if min(turns, slides) > 0 and not MIN_ARM < (arm := np.sqrt(turns / slides)) < MAX_ARM:
        units[:3] = units[6:] = arm
    equations = sums[:, :-1] / np.outer(units, units)
    return np.linalg.lstsq(equations, sums[:, -1] / units, rcond=1 / MAX_CONDITION)[0] / units


def _motion(twist: np.ndarray) -> np.ndarray:
    """The motion (4, 4) of a rotation vector and a translation (6,)."""
    return se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:])


def _fits(moved: Array, index: Index, distance: float) -> np.ndarray:
    """Scores of points (S, N, 3), numbers near the target and their RMS distances: (S, 3)."""
    fits = []
    for found in to_host(index.query(moved.reshape(-1, 3), max_distance=distance)[0]).reshape(len(moved), -1):
        near = found[np.isfinite(found)]
        rms = float(np.sqrt(np.mean(near**2))) if len(near) else 0.0
        fits.append(((1 - (near / distance) ** 2).sum(), len(near), rms))
    return np.array(fits)
