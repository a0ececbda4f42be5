"""The numbers that tell right motions from wrong ones, each with the reason that it gives for a refusal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pcreg.registration.judge.evidence import Evidence

# Of an overlap; the rest is seen from both sides, as thin objects are, and clouds of several views
MIN_SAME_SIDE_RATIO = 0.8
NEIGHBORHOOD_VOLUME = 26  # of what lies within 1 to 3 distances of a point, in that of what lies within 1
MAX_THICKNESS = 20.0  # voxels


@dataclass(frozen=True)
class ConfidenceTerm:
    """One number, and the reason for a refusal where it is what a motion misses most."""

    value: Callable[[Evidence], float]
    rejection_reason: Callable[[Evidence], str]

    @property
    def name(self) -> str:
        return self.value.__name__.strip("_")


def few_inliers(evidence: Evidence) -> str:
    return (
        f"only {evidence.inliers} of {evidence.matches} matches agree, which may be chance; the clouds may "
        "not overlap, or the voxel size may not suit them"
    )


def _support(evidence: Evidence) -> float:
    """Minus the square of the fraction by which the inliers fall short of what chance seldom reaches.

    Where a viewpoint is estimated that number is doubled, which fits simulated motions best.
    """
    chance = (12 + 0.005 * evidence.matches) * (1 if evidence.viewpoints_known else 2)
    return -(max(1 - evidence.inliers / chance, 0.0) ** 2)


def _agreement(evidence: Evidence) -> float:
    """Log of the fraction of matches that agree."""
    return np.log(0.03 + evidence.inliers / max(evidence.matches, 1))


def _above_chance(evidence: Evidence) -> float:
    """Log of how many times as many matches agree as the density of those that nearly do lets expect."""
    return np.log((evidence.inliers + 1) / (evidence.near_misses / NEIGHBORHOOD_VOLUME + 1))


def _thickness(evidence: Evidence) -> float:
    """Log of how far the matches that agree spread in every direction."""
    return np.log(0.1 + min(evidence.inlier_thickness, MAX_THICKNESS))


def _flat(evidence: Evidence) -> str:
    return (
        f"the {evidence.inliers} matches that agree lie nearly in a plane, as those of two unrelated walls "
        "or of a mirror image do"
    )


def _normals(evidence: Evidence) -> float:
    """How parallel the surfaces are that touch."""
    return evidence.normal_agreement


def _planes(evidence: Evidence) -> float:
    """Minus the distance, in voxels, of the surfaces that touch."""
    return -evidence.plane_rmse


def _askew(evidence: Evidence) -> str:
    return (
        f"{evidence.overlap:.0%} of the source lies on the target, but the surfaces cross more than they "
        "cover each other"
    )


def _undisputed(evidence: Evidence) -> float:
    """Minus the log of the share that contradicts of what either sensor sees of the other cloud."""
    return -np.log(evidence.contradiction)


def _disputed(evidence: Evidence) -> str:
    return (
        f"of what one sensor sees of the other cloud {evidence.contradiction:.0%} stands where it looked "
        "through"
    )


def _sides(evidence: Evidence) -> float:
    return evidence.same_side_ratio


def _backwards(evidence: Evidence) -> str:
    return (
        f"{1 - evidence.same_side_ratio:.0%} of the overlap was seen from the other side by the other "
        "sensor, as when a scene is laid onto its mirror image"
    )


def _consistency(evidence: Evidence) -> float:
    """Minus the log of the violations: points in free space, and surfaces seen from opposite sides."""
    return -np.log(
        0.02 + evidence.free_space_violation + max(MIN_SAME_SIDE_RATIO - evidence.same_side_ratio, 0.0)
    )


def _contradicted(evidence: Evidence) -> str:
    if evidence.free_space_violation >= MIN_SAME_SIDE_RATIO - evidence.same_side_ratio:
        return (
            f"{evidence.free_space_violation:.0%} of one cloud stands where the other's sensor looked through"
        )
    return _backwards(evidence)


def _observability(evidence: Evidence) -> float:
    """Log of the least observability, constant from where the overlap constrains the motion well."""
    return min(np.log(0.003 + evidence.observability.min_observability), -2.0)


def _unconstrained(evidence: Evidence) -> str:
    free = evidence.observability.free[0] if evidence.observability.free else "slide"
    return f"the surfaces that touch could {free} and still touch, so they prove little"


def _descriptors(evidence: Evidence) -> float:
    """Agreement of descriptors, which counts how much touches."""
    return evidence.agreement


def _overlap_descriptors(evidence: Evidence) -> float:
    """Agreement of the descriptors that touch, however few these are."""
    return evidence.overlap_agreement


def _unlike(evidence: Evidence) -> str:
    return (
        f"{evidence.overlap:.0%} of the source lies on the target, but the surroundings of the points that "
        "touch are not alike"
    )


OBSERVABILITY = ConfidenceTerm(_observability, _unconstrained)
# More of each never makes a motion less likely.
LEARNED_TERMS = (
    ConfidenceTerm(_agreement, few_inliers),
    ConfidenceTerm(_above_chance, few_inliers),
    ConfidenceTerm(_thickness, _flat),
    ConfidenceTerm(_normals, _askew),
    ConfidenceTerm(_planes, _askew),
    ConfidenceTerm(_undisputed, _disputed),
    ConfidenceTerm(_sides, _backwards),
    ConfidenceTerm(_descriptors, _unlike),
    ConfidenceTerm(_overlap_descriptors, _unlike),
    OBSERVABILITY,
)
HANDCRAFTED_TERMS = (
    ConfidenceTerm(_support, few_inliers),
    ConfidenceTerm(_agreement, few_inliers),
    ConfidenceTerm(_consistency, _contradicted),
    OBSERVABILITY,
)


def values_of(terms: tuple[ConfidenceTerm, ...], evidence: Evidence) -> np.ndarray:
    """The values (F,) of the terms."""
    return np.array([term.value(evidence) for term in terms])
