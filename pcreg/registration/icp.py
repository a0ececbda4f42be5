"""Refinement of a motion that is nearly right: iterated closest points, point to plane.

The start is kept unless the result scores better. The loop is ours because it has to repeat: Open3D's
adds its sums up in parallel, in an order that changes from run to run.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import lengths, se3, transform
from pcreg.geometry.subsample import every_nth

MAX_ITERATIONS = 30  # of either stage; right motions take 5 to 15, wrong ones do not converge
MAX_COARSE_POINTS = 5_000  # of the source in the first stage, which need not be exact
# Least step, in distances: below it partners at the edge come and go, and the loop need not end
CONVERGENCE_RATIO = 1e-3
MAX_CONDITION = 1e8  # of the equations; directions that are determined less are left alone


@dataclass(frozen=True)
class Refinement:
    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of source points with a target point within the distance
    rmse: float  # metres, over those points; 0 if there are none
    distance: float  # metres


def refine(
    source: np.ndarray,
    target: np.ndarray,
    normals: np.ndarray,
    T_target_source: np.ndarray,
    distance: float,
    surfaces_of: "SurfacesOf | None" = None,
) -> Refinement:
    """Refine T_target_source (4, 4) on source (N, 3) and target (M, 3), M >= 1, spaced about `distance`.

    Point-to-plane ICP (Chen and Medioni, 1992) with the `normals` (M, 3) of the target, of either sign:
    first with partners up to 2 x `distance`, for a rough start, then up to 1 x.
    A motion scores max(0, 1 - (d / distance)^2) summed over the source points, d being the distance to the
    nearest target point (MSAC; Torr and Zisserman, 2000). `surfaces_of` makes the Surfaces that are compared,
    by default here.
    """
    origin = target.mean(0)  # rotations about a far origin lose digits
    to_work, to_target = se3(np.eye(3), -origin), se3(np.eye(3), origin)
    start = to_work @ T_target_source
    surfaces = (surfaces_of or Surfaces)(transform(start, source), target - origin, normals)

    step = best = np.eye(4)
    best_score = _score(surfaces, best, distance)
    for some, max_distance in ((surfaces.of_points(MAX_COARSE_POINTS), 2 * distance), (surfaces, distance)):
        step = some.point_to_plane(step, max_distance, CONVERGENCE_RATIO * distance)
        score = _score(surfaces, step, distance)
        if score > best_score:
            best, best_score = step, score
    near = surfaces.distances(best, distance)
    rmse = float(np.sqrt(np.mean(near**2))) if len(near) else 0.0
    return Refinement(to_target @ best @ start, len(near) / max(len(source), 1), rmse, distance)


class Surfaces:
    """Source (N, 3) and target (M, 3), M >= 1, with the normals (M, 3) of the target."""

    def __init__(self, source: np.ndarray, target: np.ndarray, normals: np.ndarray) -> None:
        self.source, self.target, self.normals = source, target, normals

    @cached_property
    def tree(self) -> cKDTree:
        return cKDTree(self.target)

    def of_points(self, count: int) -> "Surfaces":
        """With so many points of the source at most."""
        fewer = copy(self)
        fewer.source = every_nth(self.source, count)
        return fewer

    def distances(self, T: np.ndarray, max_distance: float) -> np.ndarray:
        """Of the K source points, moved by T, with a target point within `max_distance` metres that to it."""
        found, _ = nearest(transform(T, self.source), self.tree, max_distance)
        return found[np.isfinite(found)]

    def normal_equations(self, T: np.ndarray, max_distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the least squares from source points, moved by T, to planes: J^T J (6, 6) and J^T r (6,).

        The unknowns are a small rotation and translation. A point with a target point within `max_distance`
        counts by its distance r from the plane through that one.
        """
        points = transform(T, self.source)
        distance, partner = nearest(points, self.tree, max_distance)
        near = np.isfinite(distance)
        points, normal = points[near], self.normals[partner[near]]
        offset = ((self.tree.data[partner[near]] - points) * normal).sum(1)
        rows = np.hstack([np.cross(points, normal), normal])  # (K, 6): d offset / d (rotation, translation)
        return rows.T @ rows, rows.T @ offset

    def point_to_plane(
        self, T: np.ndarray, max_distance: float, min_step: float, iterations: int = MAX_ITERATIONS
    ) -> np.ndarray:
        """Iterate from T (4, 4), partners being within `max_distance`, until a step is below `min_step`."""
        radius = self.radius(T)
        for _ in range(iterations):
            # Directions in which the surfaces slide along each other are left alone by the cut-off.
            twist = np.linalg.lstsq(*self.normal_equations(T, max_distance), rcond=1 / MAX_CONDITION)[0]
            T = se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:]) @ T
            if radius * np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) < min_step:
                break
        return T

    def radius(self, T: np.ndarray) -> float:
        """The mean distance of source points, moved by T, from the origin: it takes radians to metres."""
        return float(lengths(transform(T, self.source)).mean())


SurfacesOf: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], Surfaces]


def _score(surfaces: Surfaces, T: np.ndarray, distance: float) -> float:
    return float((1 - (surfaces.distances(T, distance) / distance) ** 2).sum())
