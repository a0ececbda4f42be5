"""What speaks for and against a motion, counted.

Under a wrong motion floors and walls still lie on floors and walls, so overlap alone says little. Other
things separate right from wrong. Descriptor matches: a wrong motion that was found through a handful of
chance matches loses them once it has slid onto the nearest surfaces, so they are counted after
refinement. Free space: a wrong motion puts things where the other sensor looked straight through. And
sides: it lays the front of a surface onto the back of another, which is how the mirror image of a room
fits the room.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.se3 import inverse, transform
from pcreg.registration.free_space import View, free_space_violation
from pcreg.registration.icp import Refinement
from pcreg.registration.observability import Observability, observability
from pcreg.registration.preprocess import DescribedCloud
from pcreg.runtime import parallel

MIN_NORMAL_COSINE = 0.5  # cosine: surfaces that meet at more than 60 degrees have no sides to compare


@dataclass(frozen=True)
class Evidence:
    """About one refined motion."""

    matches: int  # pairs of points whose features are each other's nearest
    inliers: int  # of them, brought together
    overlap: float  # fraction of the downsampled source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    viewpoints_known: bool  # of both clouds; else what follows is estimated
    free_space_violation: float  # fraction of a cloud in the free space of the other
    same_side_ratio: float  # fraction of the overlap that both sensors saw from the same side
    observability: Observability  # of the overlap, in the target's frame


def gather_evidence(
    source: DescribedCloud, target: DescribedCloud, agree: np.ndarray, refined: Refinement, margin: float
) -> Evidence:
    """The evidence about a refined motion of described clouds.

    Of the matches, those of the mask `agree` (P,) are brought together. What stands further than `margin`
    metres in front of a surface is not part of it.
    """
    T, distance = refined.T_target_source, refined.distance
    moved = transform(T, source.surface)
    apart, partner = cKDTree(target.surface).query(
        moved, distance_upper_bound=distance, workers=parallel.cores_for(len(moved))
    )
    touching = np.isfinite(apart)
    normals = target.normals[partner[touching]]
    cosine = ((source.normals @ T[:3, :3].T)[touching] * normals).sum(1)
    cosine = cosine[np.abs(cosine) > MIN_NORMAL_COSINE]
    return Evidence(
        matches=len(agree),
        inliers=int(agree.sum()),
        overlap=refined.overlap,
        rmse=refined.rmse,
        viewpoints_known=bool(source.viewpoint_known and target.viewpoint_known),
        free_space_violation=_free_space_violation(source, target, T, margin),
        same_side_ratio=float((cosine > 0).mean()) if len(cosine) else 1.0,
        observability=observability(moved[touching], normals),
    )


def _free_space_violation(
    source: DescribedCloud, target: DescribedCloud, T_target_source: np.ndarray, margin: float
) -> float:
    """How much of either cloud stands where the sensor of the other looked through."""
    views = (
        (transform(T_target_source, source.surface), target),
        (transform(inverse(T_target_source), target.surface), source),
    )
    return max(
        free_space_violation(points, View.of(scan.surface, scan.viewpoint), margin) for points, scan in views
    )
