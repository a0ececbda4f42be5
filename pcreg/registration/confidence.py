"""The verdict on a motion: a calibrated probability from the evidence, and a reason in words.

A logistic model of a few numbers, fitted to motions between simulated scans whose ground truth is known
(benchmarks/bench_verdict.py prints the tables below); docs/benchmarks.md has its results on real ones. There
are two models, because many more matches of learned descriptors are right than of FPFH. Each has a second one
for clouds whose viewpoint is estimated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.registration.evidence import Evidence

# Of an overlap; the rest is seen from both sides, as thin objects are, and clouds of several views
MIN_SAME_SIDE_RATIO = 0.8
MIN_INLIERS = 5  # with fewer a motion is as likely wrong as right, whatever the other evidence
# A motion that is more likely right than wrong ends the search, but for its alternative
MIN_CANDIDATE_PROBABILITY = 0.5
MIN_CONFIDENCE = 0.7  # from which a motion counts as registered
# From which on more of it makes a motion no likelier
MAX_AGREEMENT = 0.8
MAX_OVERLAP_AGREEMENT = 2.0
MIN_ALTERNATIVE_CONFIDENCE = 0.2  # of an alternative from which the answer counts as ambiguous


@dataclass(frozen=True)
class ConfidenceTerm:
    """A number that separates right motions from wrong ones, and the reason it gives for a refusal."""

    value: Callable[[Evidence], float]
    rejection_reason: Callable[[Evidence], str]


@dataclass(frozen=True)
class Verdict:
    registered: bool
    confidence: float  # probability that the motion is right; at least 0.7 exactly when registered
    reason: str  # in words, with the numbers
    ambiguous: bool  # refused, and an alternative is about as likely


def terms(evidence: Evidence) -> np.ndarray:
    """The values (F,) of TERMS."""
    return np.array([term.value(evidence) for term in TERMS])


@dataclass(frozen=True)
class ConfidenceModel:
    """A logistic model: two numbers per term, in the order of TERMS."""

    weights: tuple[float, ...]  # in the log-odds
    usual: tuple[float, ...]  # value of a term: its mean over right motions
    bias: float  # of the log-odds
    estimated: "ConfidenceModel | None" = None  # for clouds of which a viewpoint is estimated

    def probability(self, evidence: Evidence) -> float:
        """That the motion is right, whatever other motions there are.

        With an estimated viewpoint it is never higher than with a known one and the same evidence.
        """
        likely = self._deciding(evidence)._logistic(evidence)
        return likely if evidence.inliers >= MIN_INLIERS else min(likely, 0.5)

    def _deciding(self, evidence: Evidence) -> "ConfidenceModel":
        """Of the models that apply the one with the lower probability."""
        if self.estimated is None or evidence.viewpoints_known:
            return self
        return min(self, self.estimated, key=lambda model: model._logistic(evidence))

    def _logistic(self, evidence: Evidence) -> float:
        return float(1 / (1 + np.exp(-self.bias - terms(evidence) @ self.weights)))

    def verdict(self, evidence: Evidence, alternatives: Sequence[Evidence] = ()) -> Verdict:
        """The verdict on a motion, given the evidence about it and about others between the same clouds.

        At most one of them is right: with odds o of each by itself, the first has the probability
        o_1 / (1 + o_1 + o_2 + ...).
        """
        likely = (min(self.probability(each), 1 - 1e-9) for each in (evidence, *alternatives))
        odds = [p / (1 - p) for p in likely]
        confidence, *others = (each / (1 + sum(odds)) for each in odds)
        registered = confidence >= MIN_CONFIDENCE
        strongest = max(others, default=0.0)
        ambiguous = not registered and strongest >= MIN_ALTERNATIVE_CONFIDENCE
        if registered:
            reason = _in_favour(evidence)
        elif ambiguous:
            alternative = alternatives[int(np.argmax(others))]
            reason = (
                f"two motions fit about equally well: {evidence.inliers} matches agree with this one, "
                f"{alternative.inliers} with the other; the scene may repeat itself or be symmetric"
            )
        elif evidence.inliers < MIN_INLIERS:
            reason = _few_inliers(evidence)
        else:
            model = self._deciding(evidence)
            missing = (np.array(model.usual) - terms(evidence)) * model.weights
            reason = TERMS[int(np.argmax(missing))].rejection_reason(evidence)
        return Verdict(registered, confidence, reason, ambiguous)


def _in_favour(evidence: Evidence) -> str:
    return (
        f"{evidence.inliers} of {evidence.matches} matches agree, {evidence.overlap:.0%} of the source "
        f"lies on the target, {evidence.rmse:.2g} m apart, and {evidence.free_space_violation:.0%} "
        "contradicts what was seen"
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


def _few_inliers(evidence: Evidence) -> str:
    return (
        f"only {evidence.inliers} of {evidence.matches} matches agree, which may be chance; the clouds may "
        "not overlap, or the voxel size may not suit them"
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
    return (
        f"{1 - evidence.same_side_ratio:.0%} of the overlap was seen from the other side by the other "
        "sensor, as when a scene is laid onto its mirror image"
    )


def _observability(evidence: Evidence) -> float:
    """Log of the least observability, constant from where the overlap constrains the motion well."""
    return min(np.log(0.003 + evidence.observability.min_observability), -2.0)


def _unconstrained(evidence: Evidence) -> str:
    free = evidence.observability.free[0] if evidence.observability.free else "slide"
    return f"the surfaces that touch could {free} and still touch, so they prove little"


def _descriptors(evidence: Evidence) -> float:
    """Agreement of descriptors, which counts how much touches."""
    return min(evidence.agreement, MAX_AGREEMENT)


def _overlap_descriptors(evidence: Evidence) -> float:
    """Agreement of the descriptors that touch, however few these are."""
    return min(evidence.overlap_agreement, MAX_OVERLAP_AGREEMENT)


def _unlike(evidence: Evidence) -> str:
    return (
        f"{evidence.overlap:.0%} of the source lies on the target, but the surroundings of the points that "
        "touch are not alike"
    )


# More of each never makes a motion less likely.
TERMS = (
    ConfidenceTerm(_support, _few_inliers),
    ConfidenceTerm(_agreement, _few_inliers),
    ConfidenceTerm(_consistency, _contradicted),
    ConfidenceTerm(_observability, _unconstrained),
    ConfidenceTerm(_descriptors, _unlike),
    ConfidenceTerm(_overlap_descriptors, _unlike),
)
LEARNED = ConfidenceModel(
    weights=(0.04, 0.82, 2.43, 1.20, 1.54, 1.28),
    usual=(-0.07, -1.36, 2.87, -2.54, 0.69, 1.88),
    bias=-4.10,
    estimated=ConfidenceModel(
        weights=(1.25, 0.92, 0.73, 1.20, 2.84, 1.08),
        usual=(-0.10, -1.24, 2.80, -2.44, 0.67, 1.87),
        bias=1.17,
    ),
)
# Fitted before descriptors were compared where clouds touch
HANDCRAFTED = ConfidenceModel(
    weights=(1.87, 0.56, 3.40, 2.07, 0.0, 0.0),
    usual=(-0.05, -2.11, 3.04, -2.44, 0.0, 0.0),
    bias=-1.06,
    estimated=ConfidenceModel(
        weights=(3.53, 1.64, 1.69, 1.50, 0.0, 0.0),
        usual=(-0.14, -2.36, 2.75, -2.41, 0.0, 0.0),
        bias=6.93,
    ),
)
