"""Evidence for and against a motion, counted.

Under a wrong motion floors and walls still lie on floors and walls, so overlap alone does not separate right
from wrong. Descriptor matches: a wrong motion that was found through a handful of
chance matches loses them once it has slid onto the nearest surfaces, so they are counted after
refinement. Free space: a wrong motion puts things where the other sensor looked straight through. And
sides: it lays the front of a surface onto the back of another, which is how the mirror image of a room
fits the room.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import transform
from pcreg.registration.descriptor_agreement import DescriptorAgreement
from pcreg.registration.free_space import max_free_space_violation
from pcreg.registration.icp import Refinement
from pcreg.registration.observability import Observability, observability
from pcreg.registration.preprocess import DescribedCloud

MIN_NORMAL_COSINE = 0.5  # surfaces that meet at more than 60 degrees have no sides to compare


@dataclass(frozen=True)
class Evidence:
    """What was counted for one refined motion."""

    matches: int  # pairs of points whose features are each other's nearest
    inliers: int  # of them, brought together
    overlap: float  # fraction of the downsampled source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    agreement: float  # of descriptors, as pcreg.registration.descriptor_agreement has it
    overlap_agreement: float  # the same over the points of the overlap alone
    viewpoints_known: bool  # of both clouds; else what follows is estimated
    free_space_violation: float  # fraction of a cloud in the free space of the other
    same_side_ratio: float  # fraction of the overlap that both sensors saw from the same side
    observability: Observability  # of the overlap, in the target's frame


def gather_evidence(
    source: DescribedCloud,
    target: DescribedCloud,
    agree: np.ndarray,
    agreement: DescriptorAgreement,
    refined: Refinement,
    margin: float,
) -> Evidence:
    """The evidence about a refined motion of described clouds.

    The mask `agree` (P,) says which matches the motion brings together, `agreement` how alike the descriptors
    are of what touches. Points further than `margin` metres
    in front of a surface are not part of it.
    """
    T, distance = refined.T_target_source, refined.distance
    moved = transform(T, source.surface)
    distance_to_target, partner = nearest(moved, cKDTree(target.surface), distance)
    touching = np.isfinite(distance_to_target)
    normals = target.normals[partner[touching]]
    cosine = ((source.normals @ T[:3, :3].T)[touching] * normals).sum(1)
    cosine = cosine[np.abs(cosine) > MIN_NORMAL_COSINE]
    of_cloud, of_overlap = agreement.of_cloud_and_overlap(T)
    return Evidence(
        matches=len(agree),
        inliers=int(agree.sum()),
        overlap=refined.overlap,
        rmse=refined.rmse,
        agreement=of_cloud,
        overlap_agreement=of_overlap,
        viewpoints_known=bool(source.viewpoint_known and target.viewpoint_known),
        free_space_violation=max_free_space_violation(
            source.surface, target.surface, T, margin, (source.viewpoint, target.viewpoint)
        ),
        same_side_ratio=float((cosine > 0).mean()) if len(cosine) else 1.0,
        observability=observability(moved[touching], normals),
    )
