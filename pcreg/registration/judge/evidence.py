"""Evidence for and against a refined motion.

Under a wrong motion floors and walls may still lie on floors and walls, so overlap alone does not separate
right from wrong. Three more things do. Inliers are counted after refinement: a wrong motion found by a few
chance matches loses them as it slides onto the nearest surfaces. A wrong motion puts objects into the free
space of the other sensor. And it may lay the front of a surface onto the back of another one, as where a room
fits its mirror image.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.arrays import like, namespace, take, to_host
from pcreg.geometry.se3 import dot
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.estimation.icp import Refinement
from pcreg.registration.judge.free_space import FreeSpace
from pcreg.registration.judge.observability import Observability, observability
from pcreg.registration.judge.overlap import Overlap

MIN_NORMAL_COSINE = 0.5  # surfaces that meet at more than 60 degrees have no sides to compare
MIN_TOUCHING = 20  # points of the overlap, both ways; with fewer `plane_rmse` is RANDOM_PLANE_RMSE
RANDOM_PLANE_RMSE = 0.5  # voxels, `plane_rmse` of surfaces laid on each other at random
CURVED_VARIATION = 0.06  # of surfaces that count as curved; a plane with noise has 0.01


@dataclass(frozen=True)
class Evidence:
    """Evidence about one refined motion."""

    matches: int  # pairs of points whose features are mutual nearest neighbours
    inliers: int  # matches that the motion brings together
    inlier_thickness: float  # voxels, standard deviation of the inliers where they spread least
    overlap: float  # fraction of the downsampled source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    plane_rmse: float  # voxels, of the overlap, both ways, from the planes through the other cloud's points
    free_space_violation: float  # fraction of a cloud in the free space of the other; the larger of both
    # Shares among the points that contradict or confirm the other sensor's view, geometric mean of both ways
    contradiction: float  # the largest piece in front of what that sensor saw, away from its borders
    curved_contradiction: float  # edges and small objects in front of what that sensor saw, or beside it
    same_side_ratio: float  # fraction of the overlap that both sensors saw from the same side
    observability: Observability  # of the overlap, in the target's frame


def gather_evidence(
    source: DescribedCloud,
    target: DescribedCloud,
    refined: Refinement,
    overlap: Overlap,
    free_space: FreeSpace,
    matches: int,
    inliers: np.ndarray,
) -> Evidence:
    """The evidence about a refined motion of described clouds.

    `overlap` is that of the surfaces under this motion, within the distance of the refinement. `free_space`
    compares each surface with the view of the other sensor. `matches` is the number of matches, and `inliers`
    (I, 3) are the target's points in those matches that the motion brings together.
    """
    T, voxel = refined.T_target_source, refined.distance
    curved = [(cloud.variation / CURVED_VARIATION).clip(0, 1) for cloud in (source, target)]
    sights = free_space.sights(T, overlap, curved)
    plane_rmse, same_side_ratio = _contact(source, target, T, overlap, voxel)
    return Evidence(
        matches=matches,
        inliers=len(inliers),
        inlier_thickness=_thickness(inliers) / voxel,
        overlap=refined.overlap,
        rmse=refined.rmse,
        plane_rmse=plane_rmse,
        free_space_violation=max(each.in_front / max(each.covered, 1) for each in sights),
        contradiction=_share([(each.against, each.confirmed) for each in sights]),
        curved_contradiction=_share([(each.curved_against, each.curved_confirmed) for each in sights]),
        same_side_ratio=same_side_ratio,
        observability=observability(overlap.points, overlap.normals),
    )


def _share(counts: Sequence[tuple[float, float]]) -> float:
    """Share of the first of two counts, smoothed to (k + 1) / (n + 5); geometric mean over the pairs."""
    shares = [(against + 1) / (against + confirmed + 5) for against, confirmed in counts]
    return float(np.prod(shares) ** (1 / len(shares)))


def _contact(
    source: DescribedCloud, target: DescribedCloud, T: np.ndarray, overlap: Overlap, voxel: float
) -> tuple[float, float]:
    """RMS distance to the other cloud's planes in voxels, and fraction seen from the same side; both ways."""
    xp, of_source, of_target = namespace(target.normals), overlap.source, overlap.target
    turned = source.normals @ like(T[:3, :3], source.normals).T
    # `overlap.offsets` and `overlap.normals` are of the source's points; these are of the target's
    normals = take(turned, of_target.partners)
    between = take(overlap.moved, of_target.partners) - take(target.surface, of_target.rows)
    offsets = xp.concat([overlap.offsets, dot(between, normals)]) / voxel
    ours, theirs = (turned, of_source, overlap.normals), (target.normals, of_target, normals)
    cosine = xp.concat([dot(take(each, at.rows), other) for each, at, other in (ours, theirs)])
    sums = [xp.count_nonzero(each > MIN_NORMAL_COSINE) for each in (cosine, xp.abs(cosine))]
    sums = xp.stack([xp.asarray(each, dtype=xp.float64) for each in (*sums, xp.sum(offsets**2))])
    same_side, sided, squares = to_host(sums).tolist()
    plane_rmse = (squares / len(offsets)) ** 0.5 if len(offsets) >= MIN_TOUCHING else RANDOM_PLANE_RMSE
    return plane_rmse, same_side / sided if sided else 1.0


def _thickness(points: np.ndarray) -> float:
    """The standard deviation of points (N, 3) in the direction in which they spread least; 0 of two."""
    if len(points) < 3:
        return 0.0
    return float(np.linalg.eigvalsh(np.cov(points.T)).clip(0)[0] ** 0.5)
