"""The result of registering two clouds."""

from dataclasses import dataclass, field

import numpy as np

from pcreg.registration.evidence import Evidence


@dataclass(frozen=True)
class Registration:
    """The motion found, and whether to believe it."""

    T_target_source: np.ndarray  # (4, 4) float64, moves source into target; meaningless if not registered
    registered: bool
    confidence: float  # probability that the motion is right; at least 0.7 exactly when registered
    inliers: int  # matches that the motion brings together
    overlap: float  # fraction of the thinned source with a target point within one voxel
    rmse: float  # metres, over the points of the overlap
    reason: str  # the verdict in words
    seconds: dict[str, float]  # by step
    voxel: float  # metres, the scale at which it was found
    evidence: Evidence  # what the confidence is made of
    # (4, 4) another motion about as likely, if there is one
    alternative: np.ndarray | None = field(repr=False)
    agreeing: np.ndarray = field(repr=False)  # (inliers, 2, 3) float64, source and target points that match
    # where the sensors of source and target stood (3,), metres; None: that is estimated
    viewpoints: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    notes: tuple[str, ...] = ()  # what looked wrong with the clouds, a sentence each
