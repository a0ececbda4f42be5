"""Refinement of a motion that is nearly right: iterated closest points, point to plane.

The start is kept unless the result scores better. The loop is ours because it has to repeat: Open3D's
adds its sums up in parallel, in an order that changes from run to run.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import se3, transform
from pcreg.geometry.subsample import every_nth

MAX_ITERATIONS = 30  # of either stage; right motions take 5 to 15, wrong ones do not converge
MAX_COARSE_POINTS = 5_000  # of the source in the first stage, which need not be exact
# Least step, in distances: below it partners at the edge come and go, and the loop need not end
CONVERGENCE_RATIO = 1e-3


@dataclass(frozen=True)
class Refinement:
    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of source points with a target point within the distance
    rmse: float  # metres, over those points; 0 if there are none
    distance: float  # metres


def refine(
    source: np.ndarray, target: np.ndarray, normals: np.ndarray, T_target_source: np.ndarray, distance: float
) -> Refinement:
    """Refine T_target_source (4, 4) on source (N, 3) and target (M, 3), M >= 1, spaced about `distance`.

    Point-to-plane ICP (Chen and Medioni, 1992) with the `normals` (M, 3) of the target, of either sign:
    first with partners up to 2 x `distance`, for a rough start, then up to 1 x.
    A motion scores max(0, 1 - (d / distance)^2) summed over the source points, d being the distance to the
    nearest target point (MSAC; Torr and Zisserman, 2000).
    """
    origin = target.mean(0)  # rotations about a far origin lose digits
    to_work, to_target = se3(np.eye(3), -origin), se3(np.eye(3), origin)
    start = to_work @ T_target_source
    moved, target = transform(start, source), target - origin
    tree = cKDTree(target)

    step = best = np.eye(4)
    best_score = _score(moved, tree, distance)
    coarse = every_nth(moved, MAX_COARSE_POINTS)
    for points, max_distance in ((coarse, 2 * distance), (moved, distance)):
        step = _point_to_plane(points, tree, normals, step, max_distance, CONVERGENCE_RATIO * distance)
        score = _score(transform(step, moved), tree, distance)
        if score > best_score:
            best, best_score = step, score
    near = _within(transform(best, moved), tree, distance)
    rmse = float(np.sqrt(np.mean(near**2))) if len(near) else 0.0
    return Refinement(to_target @ best @ start, len(near) / max(len(source), 1), rmse, distance)


def _point_to_plane(
    source: np.ndarray, tree: cKDTree, normals: np.ndarray, T: np.ndarray, max_distance: float, step: float
) -> np.ndarray:
    """Iterate from T (4, 4), with partners within `max_distance`, until an update is below `step` metres."""
    radius = np.linalg.norm(transform(T, source), axis=1).mean()  # takes radians to metres
    for _ in range(MAX_ITERATIONS):
        points = transform(T, source)
        distance, partner = nearest(points, tree, max_distance)
        near = np.isfinite(distance)
        points, normal = points[near], normals[partner[near]]
        offset = ((tree.data[partner[near]] - points) * normal).sum(1)
        rows = np.hstack([np.cross(points, normal), normal])  # (K, 6): d offset / d (rotation, translation)
        # Directions in which the surfaces slide along each other are left alone by the cut-off.
        twist = np.linalg.lstsq(rows.T @ rows, rows.T @ offset, rcond=1e-8)[0]
        T = se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:]) @ T
        if radius * np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) < step:
            break
    return T


def _within(points: np.ndarray, tree: cKDTree, distance: float) -> np.ndarray:
    """The distances (K,) in metres of the K points whose nearest one is within `distance`."""
    found, _ = nearest(points, tree, distance)
    return found[np.isfinite(found)]


def _score(points: np.ndarray, tree: cKDTree, distance: float) -> float:
    return float((1 - (_within(points, tree, distance) / distance) ** 2).sum())
