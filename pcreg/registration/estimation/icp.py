"""Refinement of a nearly right motion by ICP along mean normals.

The start is kept if it scores clearly better than the result. Open3D's ICP does not repeat: it adds up sums
in parallel, in an order that changes from run to run.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.arrays import Array, Index, every_nth, is_on_host, like, namespace, take, to_host
from pcreg.geometry.se3 import dot, enlargement, lengths, moved_by_each, scale_of, se3, transform, translation

MAX_ITERATIONS = 30  # of either stage; right motions take 5 to 15, wrong ones do not converge
MAX_COARSE_POINTS = 5_000  # of the source in the first stage, which need not be exact
MIN_COSINE = 0.7  # between the normals of partners, of either sign
# Offset of partners, in distances, at which they have half their weight in the second stage. With weights the
# first would not leave a start where part of the source lies on a wrong surface
CAUCHY_SCALE = 0.1
# Least step, in distances: below it partners at the largest distance come and go, and ICP may not end
CONVERGENCE_RATIO = 1e-3
# Fraction of the best score by which a later motion may score less: sampling changes scores as much
SCORE_TOLERANCE = 0.01
MAX_CONDITION = 1e8  # of the equations; directions that are determined less get no step

# Largest distance of partners, voxels, in each iteration. It ends small: beyond the overlap points have
# partners on one side alone, which shrinks simulated rooms by 7 % at 2 voxels, by 1 % at 0.75
SIMILARITY_DISTANCES = (1.5,) * 10 + (0.75,) * 6


class Surface(NamedTuple):
    """Points (N, 3) with unit normals (N, 3), of either sign; or (H, N, 3) of several sources."""

    points: Array
    normals: Array

    def moved(self, motions: np.ndarray) -> "Surface":
        """The surface under each of motions (H, 4, 4)."""
        turns = motions * np.array([1, 1, 1, 0])  # which leave out the translation
        return Surface(moved_by_each(motions, self.points), moved_by_each(turns, self.normals))


@dataclass(frozen=True)
class Refinement:
    """A refined motion and its fit."""

    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of source points with a target point within the distance
    rmse: float  # metres, over those points; 0 if there are none
    distance: float  # metres


def refine(
    source: Surface, target: Surface, motions: np.ndarray, distance: float, iterations: int = MAX_ITERATIONS
) -> list[Refinement]:
    """Refine motions (H, 4, 4) of source to target, which has a point or more, spaced about `distance`.

    ICP along the mean normal of partners, which unlike point-to-plane is exact on curved surfaces
    (Rusinkiewicz, SIGGRAPH 2019), in two stages of up to `iterations`: partners are up to 2 x `distance`
    apart, for a rough start, then 1 x, with Cauchy's weights (Babin et al., ICRA 2019). A motion scores
    max(0, 1 - (d / distance)^2) summed over the source points, d being the distance to the nearest target
    point (MSAC; Torr and Zisserman, 2000). Of the start and the results of both stages, the last one that
    scores about as well as the best is returned.
    """
    xp = namespace(target.points)
    origin = to_host(xp.mean(target.points, axis=0))  # rotations about a far origin lose digits
    to_work, to_target = translation(-origin), translation(origin)
    planes = Planes(target._replace(points=target.points - like(origin, target.points)))
    starts = to_work @ motions
    few = Surface(*(every_nth(rows, MAX_COARSE_POINTS) for rows in source))
    some, moved = few.moved(starts), source.moved(starts)
    still, min_step = np.broadcast_to(np.eye(4), starts.shape), CONVERGENCE_RATIO * distance
    coarse = point_to_plane(some, planes, still, (2 * distance, np.inf), min_step, iterations)
    fine = point_to_plane(moved, planes, coarse, (distance, CAUCHY_SCALE * distance), min_step, iterations)
    found, tried = [], np.stack([still, coarse, fine], axis=1)
    for start, points, steps in zip(starts, moved.points, tried, strict=True):
        fits = _fits(moved_by_each(steps, points), planes.index, distance)
        best = np.flatnonzero(fits[:, 0] >= (1 - SCORE_TOLERANCE) * fits[:, 0].max())[-1]
        _, near, rmse = fits[best].tolist()
        T = to_target @ steps[best] @ start
        found.append(Refinement(T, near / max(len(source.points), 1), rmse, distance))
    return found


def refine_similarity(
    source: Surface, target: Surface, T_target_source: np.ndarray, voxel: float
) -> np.ndarray:
    """The similarity (4, 4) near T_target_source that lays source on target.

    ICP as by `refine` that also enlarges. Both clouds have a point per `voxel`. Returns the start where too
    few points touch.
    """
    planes, T = Planes(target), T_target_source
    for voxels in SIMILARITY_DISTANCES:
        turned = transform(se3(T[:3, :3] / scale_of(T), np.zeros(3)), source.normals)
        moved = Surface(transform(T, source.points), turned)
        points, partners, upright = planes.partners(moved, voxels * voxel, np.inf)
        if len(points) < 7:  # unknowns of a similarity
            return T_target_source
        xp = namespace(points)
        middle = xp.mean(points, axis=0)
        arms = points - middle
        rows = xp.concat([plane_rows(arms, upright), dot(arms, upright)[:, None]], axis=1)
        *twist, growth = _solutions(_sums(rows, dot(partners - points, upright)))
        middle = to_host(middle)
        step = _motions(np.array(twist)) @ enlargement(1 + growth)
        T = translation(middle) @ step @ translation(-middle) @ T
    return T


class Planes:
    """A target (M, 3), and an index of its points."""

    def __init__(self, surface: Surface) -> None:
        self.surface, self.index = surface, Index(surface.points)

    def partners(self, moved: Surface, max_distance: float, scale: float) -> tuple[Array, Array, Array]:
        """Moved points (K, 3) closer than `max_distance` to a point, nearest points, and mean normals.

        The length of a mean normal is the square root of the weight of the partners: 1 / (1 + (r / scale)^2)
        with their offset r along it, or 0 if the cosine of their normals is less than MIN_COSINE.
        """
        xp = namespace(moved.points)
        distance, partner = self.index.query(moved.points, max_distance=max_distance)
        near = xp.nonzero(distance < np.inf)[0]
        partner = take(partner, near)
        points, here = (take(rows, near) for rows in moved)
        partners, there = (take(rows, partner) for rows in self.surface)
        cosine = dot(here, there)
        mean = (here * xp.sign(cosine)[:, None] + there) / xp.sqrt(2 + 2 * xp.abs(cosine))[:, None]
        offset = dot(partners - points, mean) / scale
        root = (xp.abs(cosine) >= MIN_COSINE) / xp.sqrt(1 + offset * offset)
        return points, partners, mean * root[:, None]

    def step_sums(self, sources: Surface, motions: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
        """Sums (H, 6, 7) of J^T J, J^T r over partners of H sources, each moved by its motion.

        The motions are (H, 4, 4), the `bounds` those of `partners`; J is `plane_rows`.
        """
        if not is_on_host(sources.points) and sources.points.is_cuda:
            from pcreg.kernels.triton.points.nearest import step_sums

            T = like(motions, sources.points)
            return to_host(step_sums(*sources, *self.surface, T, *bounds, MIN_COSINE))[:, :6]
        found = []
        for points, normals, T in zip(*sources, motions, strict=True):
            moved = Surface(points, normals).moved(T[None])
            points, partners, normals = self.partners(Surface(*(rows[0] for rows in moved)), *bounds)
            found.append(_sums(plane_rows(points, normals), dot(partners - points, normals)))
        return np.stack(found)


def plane_rows(points: Array, normals: Array) -> Array:
    """Jacobian (K, 6), rotation first, of distances from points (K, 3) to planes with normals (K, 3)."""
    (x, y, z), (nx, ny, nz) = points.T, normals.T
    columns = [y * nz - z * ny, z * nx - x * nz, x * ny - y * nx, nx, ny, nz]
    return namespace(points).stack(columns, axis=1)


def point_to_plane(
    sources: Surface,
    planes: Planes,
    motions: np.ndarray,
    bounds: tuple[float, float],
    min_step: float,
    iterations: int,
) -> np.ndarray:
    """Iterate ICP of each of H sources from its motion until a step is below `min_step` metres.

    The `bounds`, metres, are those of `Planes.partners`. Returns the last motions (H, 4, 4). On a GPU one
    launch computes a step of all sources.
    """
    T, moving = motions.copy(), np.arange(len(motions))
    # Mean distances from the origin, by which rotations in radians become metres
    moved = (transform(*each) for each in zip(T, sources.points, strict=True))
    radii = np.array([float(namespace(points).mean(lengths(points))) for points in moved])
    for _ in range(iterations):
        if len(moving) == 0:
            break
        some = sources
        if len(moving) < len(T):
            some = Surface(*(take(rows, like(moving, rows)) for rows in sources))
        twists = _solutions(planes.step_sums(some, T[moving], bounds))
        T[moving] = _motions(twists) @ T[moving]
        turn, slide = lengths(twists[:, :3]), lengths(twists[:, 3:])
        moving = moving[radii[moving] * turn + slide >= min_step]
    return T


def _sums(rows: Array, offsets: Array) -> np.ndarray:
    """The normal equations (C, C + 1) of rows (K, C) and offsets (K,), with one wait for the device."""
    return to_host(namespace(rows).concat([rows.T @ rows, (rows.T @ offsets)[:, None]], axis=1))


def _solutions(sums: np.ndarray) -> np.ndarray:
    """Solve normal equations (..., C, C + 1) for steps (..., C), 0 in directions that they do not determine.

    Rotations and growth are solved for in units of their arm, so that the size of a cloud does not matter.
    """
    squares = np.diagonal(sums, axis1=-2, axis2=-1)
    turns, slides = squares[..., :3].sum(-1), squares[..., 3:6].sum(-1)
    units, arm = np.ones(squares.shape), np.ones(turns.shape)
    np.divide(turns, slides, out=arm, where=(turns > 0) & (slides > 0))
    units[..., :3] = units[..., 6:] = np.sqrt(arm)[..., None]
    equations = sums[..., :-1] / (units[..., :, None] * units[..., None, :])
    inverses = np.linalg.pinv(equations, 1 / MAX_CONDITION, hermitian=True)
    return (inverses @ (sums[..., -1] / units)[..., None])[..., 0] / units


def _motions(twists: np.ndarray) -> np.ndarray:
    """The motions (..., 4, 4) of rotation vectors and translations (..., 6)."""
    return se3(Rotation.from_rotvec(twists[..., :3]).as_matrix(), twists[..., 3:])


def _fits(moved: Array, index: Index, distance: float) -> np.ndarray:
    """Scores of points (S, N, 3), numbers near the target and their RMS distances: (S, 3)."""
    fits = []
    for found in to_host(index.query(moved.reshape(-1, 3), max_distance=distance)[0]).reshape(len(moved), -1):
        near = found[np.isfinite(found)]
        rms = float(np.sqrt(np.mean(near**2))) if len(near) else 0.0
        fits.append(((1 - (near / distance) ** 2).sum(), len(near), rms))
    return np.array(fits)
