"""The verdict on a motion: a calibrated probability, and a reason in words.

Fitted to motions between simulated scans whose ground truth is given (`python -m pcreg.training.judge`);
docs/benchmarks/confidence.md has the results on real ones. One model serves descriptors of all kinds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from pcreg.arrays import Array, namespace
from pcreg.registration.judge.evidence import Evidence

MIN_INLIERS = 5  # with fewer a motion is as likely wrong as right, whatever the other evidence
MIN_LIKELY = 0.5  # confidence above which the clouds are tested for noise; noise gets no more than this
MIN_CONFIDENCE = 0.7  # from which a motion counts as registered
ACCEPT_CONFIDENCE = 0.95  # from which a registration needs no mirror test, and ends the search in a map
MIN_ALTERNATIVE_CONFIDENCE = 0.2  # of an alternative from which the answer counts as ambiguous
# Largest probability of a single motion: of 1,227 motions above it, held out in the fit, one is wrong. Two
# motions of a symmetric scene both get this probability, and so are equally likely.
MAX_PROBABILITY = 0.995
MAX_DEVIATIONS = 4.0  # from the mean of a term; values further away were rare in training and are clipped
MAX_THICKNESS = 20.0  # voxels


@dataclass(frozen=True)
class ConfidenceTerm:
    """An input of the model, and the reason for a refusal if this input is the weakest."""

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
OBSERVABILITY = ConfidenceTerm(  # constant once the overlap constrains the motion well
    "observability", lambda e: min(np.log(0.003 + e.observability.min_observability), -2.0), UNCONSTRAINED
)
# A larger value of a term never makes a motion less likely
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


@dataclass(frozen=True)
class Verdict:
    """The decision on a motion."""

    registered: bool
    confidence: float  # probability that the motion is right; at least 0.7 exactly when registered
    reason: str  # in words, with the numbers
    ambiguous: bool  # refused, and an alternative is about as likely


def posterior(probabilities: Sequence[float]) -> list[float]:
    """Probabilities of hypotheses of which at most one is right, from those of each alone, below 1."""
    odds = [p / (1 - p) for p in probabilities]
    return [each / (1 + sum(odds)) for each in odds]


def proves_little(evidence: Evidence) -> bool:
    """True with few inliers, or if the overlap does not constrain the motion in some direction.

    Too few simulated scans are so bare for the model to learn this.
    """
    return evidence.inliers < MIN_INLIERS or bool(evidence.observability.free)


def monotonic_network(layers: Sequence[tuple[Array, Array]], x: Array) -> Array:
    """Output (...) for x (..., F) of layers of weights (in, out), none negative, and biases (out,)."""
    xp = namespace(x)
    *hidden, (weights, biases) = layers
    for w, b in hidden:
        signs = xp.where(xp.arange(len(b)) < len(b) / 2, 1, -1)  # of convex and of concave units
        x = signs * xp.logaddexp(xp.zeros_like(b), signs * (x @ w + b))
    return (x @ weights + biases)[..., 0]


@dataclass(frozen=True, eq=False)
class ConfidenceModel:
    """A small network of fully connected layers; its output is log-odds.

    No weight is negative, and half of the units of a layer are convex, half concave. So the log-odds grow
    with every term, and can approximate any monotonic function (Runje and Shankaranarayana, ICML 2023).
    Without hidden layers this is a logistic model.
    """

    usual: np.ndarray  # (F,) means of the terms over right motions
    mean: np.ndarray  # (F,) means of the terms in training
    deviation: np.ndarray  # (F,) standard deviations of the terms in training
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # weights (in, out), biases (out,)

    @staticmethod
    @cache
    def shipped() -> "ConfidenceModel":
        """The shipped model, for descriptors of any kind."""
        return ConfidenceModel.load(files("pcreg.weights").joinpath("verdict.safetensors").read_bytes())

    @staticmethod
    def load(content: bytes) -> "ConfidenceModel":
        """The model in a file written by `python -m pcreg.training.judge fit`."""
        from safetensors.numpy import load

        found = {name: each.astype(np.float64) for name, each in load(content).items()}
        count = sum(name.startswith("weights") for name in found)
        layers = tuple((found[f"weights.{n}"], found[f"biases.{n}"]) for n in range(count))
        terms = (found[name] for name in ("usual", "mean", "deviation"))
        return ConfidenceModel(*terms, layers)

    def log_odds(self, values: np.ndarray) -> np.ndarray:
        """Log-odds (...) that motions with values (..., F) of the terms are right."""
        x = ((values - self.mean) / self.deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        return monotonic_network(self.layers, x)

    def probability(self, evidence: Evidence) -> float:
        """Probability that the motion is right, as if it were the only hypothesis."""
        bounded = np.array([proves_little(evidence)])
        return float(self.probabilities(values_of(evidence)[None], bounded)[0])

    def probabilities(self, values: np.ndarray, bounded: np.ndarray) -> np.ndarray:
        """The same (...) of motions with values (..., F) of the terms, at most 0.5 if `bounded` (...)."""
        likely = 1 / (1 + np.exp(-self.log_odds(values)))
        return np.minimum(likely, np.where(bounded, 0.5, MAX_PROBABILITY))

    def verdict(self, evidence: Evidence, alternatives: Sequence[Evidence] = ()) -> Verdict:
        """The verdict on a motion, given the evidence about it and about others between the same clouds."""
        likely = [self.probability(each) for each in (evidence, *alternatives)]
        confidence, *others = posterior(likely)
        registered = confidence >= MIN_CONFIDENCE
        rival = max(others, default=0.0)
        # If many hypotheses fit, such as all turns of a cube, each is unlikely, though one of them is right
        share = rival / (confidence + rival) if confidence + sum(others) >= MIN_CONFIDENCE else rival
        ambiguous = not registered and share >= MIN_ALTERNATIVE_CONFIDENCE
        if registered:
            reason = (
                f"{evidence.inliers} inliers of {evidence.matches} matches, overlap {evidence.overlap:.0%}, "
                f"RMS {evidence.rmse:.2g} m, free-space violation {evidence.free_space_violation:.0%}"
            )
        elif ambiguous:
            alternative = alternatives[int(np.argmax(others))]
            reason = (
                f"two transforms fit about equally well, one with {evidence.inliers} inliers, the other with "
                f"{alternative.inliers}; the scene may repeat itself or be symmetric"
            )
        elif evidence.inliers < MIN_INLIERS:
            reason = FEW_INLIERS.format(e=evidence)
        else:
            reason = self._most_missed(evidence).rejection_reason(evidence)
        return Verdict(registered, confidence, reason, ambiguous)

    def _most_missed(self, evidence: Evidence) -> ConfidenceTerm:
        """The term whose usual value would raise the log-odds most."""
        if evidence.observability.free:
            return OBSERVABILITY
        values = values_of(evidence)
        mended = np.where(np.eye(len(values), dtype=bool), self.usual, values)
        return TERMS[int(np.argmax(self.log_odds(mended)))]
