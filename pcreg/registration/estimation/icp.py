"""Refinement of a motion that is nearly right: iterated closest points, point to plane.

The start is kept unless the result scores better. The loop is ours because it has to repeat: Open3D's
adds its sums up in parallel, in an order that changes from run to run.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import cross, dot, lengths, se3, transform
from pcreg.geometry.subsample import every_nth
from pcreg.runtime.cached_property import cached_property

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
    surfaces = (surfaces_of or Surfaces)(source, target, normals, start, origin)

    steps = [np.eye(4)]
    for some, max_distance in ((surfaces.of_points(MAX_COARSE_POINTS), 2 * distance), (surfaces, distance)):
        steps.append(some.point_to_plane(steps[-1], max_distance, CONVERGENCE_RATIO * distance))
    fits = surfaces.fits(np.stack(steps), distance)
    best = int(np.argmax(fits[:, 0]))  # of equal ones the first
    _, near, rmse = fits[best].tolist()
    return Refinement(to_target @ steps[best] @ start, near / max(len(source), 1), rmse, distance)


class Surfaces:
    """Source (N, 3) and target (M, 3), M >= 1, with the normals (M, 3) of the target."""

    def __init__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        normals: np.ndarray,
        start: np.ndarray,
        origin: np.ndarray,
    ) -> None:
        """The source moved by `start` (4, 4), and the target seen from the `origin` (3,)."""
        self.source, self.target, self.normals = transform(start, source), target - origin, normals

    @cached_property
    def tree(self) -> cKDTree:
        return cKDTree(self.target)

    def of_points(self, count: int) -> "Surfaces":
        """With so many points of the source at most."""
        fewer = copy(self)
        fewer.source = every_nth(self.source, count)
        return fewer

    def fits(self, motions: np.ndarray, distance: float) -> np.ndarray:
        """How well motions (H, 4, 4) of the source fit, by the points with a target point within `distance`.

        (H, 3): the score, how many such points there are, and their RMS in metres; 0 if there are none.
        """
        fits = np.zeros((len(motions), 3))
        for fit, T in zip(fits, motions, strict=True):
            found, _ = nearest(transform(T, self.source), self.tree, distance)
            near = found[np.isfinite(found)]
            fit[:2] = (1 - (near / distance) ** 2).sum(), len(near)
            fit[2] = np.sqrt(np.mean(near**2)) if len(near) else 0.0
        return fits

    def normal_equations(self, T: np.ndarray, max_distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Of the least squares from source points, moved by T, to planes: J^T J (6, 6) and J^T r (6,).

        The unknowns are a small rotation and translation. A point with a target point within `max_distance`
        counts by its distance r from the plane through that one.
        """
        points = transform(T, self.source)
        distance, partner = nearest(points, self.tree, max_distance)
        near = np.flatnonzero(np.isfinite(distance))
        partner = partner.take(near)
        points, normal = points.take(near, axis=0), self.normals.take(partner, axis=0)
        offset = dot(self.target.take(partner, axis=0) - points, normal)
        rows = np.hstack([cross(points, normal), normal])  # (K, 6): d offset / d (rotation, translation)
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


SurfacesOf: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], Surfaces]
