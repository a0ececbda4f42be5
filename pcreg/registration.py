"""The result of registering two clouds."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Registration:
    """The motion found, and whether to believe it."""

    T_target_source: np.ndarray  # (4, 4) float64, moves source into target; meaningless if not registered
    registered: bool
    confidence: float  # 0..1; at least 0.5 exactly when registered
    inliers: int  # matches that the motion brings together
    overlap: float  # fraction of the thinned source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    reason: str  # the verdict in words
    seconds: dict[str, float]  # by step
    voxel: float  # metres, the scale at which it was found
    agreeing: np.ndarray = field(
        repr=False
    )  # (inliers, 2, 3) float64: the source and target points that match
    notes: tuple[str, ...] = ()  # what looked wrong with the clouds, a sentence each
