"""The terms of a confidence model, each with the reason that it gives for a refusal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pcreg.registration.judge.evidence import Evidence

MAX_THICKNESS = 20.0  # voxels


@dataclass(frozen=True)
class ConfidenceTerm:
    """One number, and the reason for a refusal where a motion misses it most."""

    name: str
    value: Callable[[Evidence], float]
    reason: str  # a template

    def rejection_reason(self, evidence: Evidence) -> str:
        """The reason with the numbers of the evidence."""
        freedom = evidence.observability.free[0] if evidence.observability.free else "slide"
        other_side = 1 - evidence.same_side_ratio
        return self.reason.format(e=evidence, freedom=freedom, other_side=other_side)


FEW_INLIERS = "only {e.inliers} inliers of {e.matches} matches, no more than chance may explain"
FLAT = (
    "the {e.inliers} inliers lie nearly in a plane, as those of two unrelated walls or of a mirror image do"
)
APART = "the overlap is {e.overlap:.0%}, but its surfaces lie {e.plane_rmse:.2f} voxels apart (RMS)"
DISPUTED = (
    "free-space violation: {e.contradiction:.0%} of one cloud, in one piece, stands where the other sensor "
    "saw empty space"
)
MISPLACED = (
    "{e.curved_contradiction:.0%} of the edges and small objects of one cloud are displaced in the other"
)
BACKWARDS = (
    "{other_side:.0%} of the overlap was seen from the other side by the other sensor, as when a scene is "
    "laid onto its mirror image"
)
UNCONSTRAINED = "the overlap could {freedom} without a worse fit, so it proves little"
OBSERVABILITY = ConfidenceTerm(  # constant from where the overlap constrains the motion well
    "observability", lambda e: min(np.log(0.003 + e.observability.min_observability), -2.0), UNCONSTRAINED
)
# More of each never makes a motion less likely
TERMS = (
    ConfidenceTerm("agreement", lambda e: np.log(0.03 + e.inliers / max(e.matches, 1)), FEW_INLIERS),
    ConfidenceTerm("thickness", lambda e: np.log(0.1 + min(e.inlier_thickness, MAX_THICKNESS)), FLAT),
    ConfidenceTerm("planes", lambda e: -e.plane_rmse, APART),
    ConfidenceTerm("undisputed", lambda e: -np.log(e.contradiction), DISPUTED),
    ConfidenceTerm("curved", lambda e: -np.log(e.curved_contradiction), MISPLACED),
    ConfidenceTerm("sides", lambda e: e.same_side_ratio, BACKWARDS),
    OBSERVABILITY,
)


def values_of(evidence: Evidence) -> np.ndarray:
    """The values (F,) of the terms."""
    return np.array([term.value(evidence) for term in TERMS])
