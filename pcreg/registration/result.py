"""The result of registering two clouds."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pcreg.geometry import se3
from pcreg.registration.evidence import Evidence


@dataclass(frozen=True, eq=False)
class Registration:
    """The motion found, and whether to believe it. Two results are equal if they are the same object."""

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

    def transform(self, points: np.ndarray) -> np.ndarray:
        """Points (N, 3) of the source, metres, in the frame of the target."""
        return se3.transform(self.T_target_source, points)

    def to_dict(self) -> dict[str, Any]:
        """Verdict, motion and figures as plain values, for JSON; matches and seconds are left out."""
        return {
            "registered": self.registered,
            "confidence": self.confidence,
            "reason": self.reason,
            "notes": list(self.notes),
            "T_target_source": self.T_target_source.tolist(),
            "inliers": self.inliers,
            "overlap": self.overlap,
            "rmse": self.rmse,
            "voxel": self.voxel,
            "evidence": asdict(self.evidence),
            "alternative": None if self.alternative is None else self.alternative.tolist(),
            "viewpoints": {
                side: None if viewpoint is None else viewpoint.tolist()
                for side, viewpoint in zip(("source", "target"), self.viewpoints, strict=True)
            },
        }
