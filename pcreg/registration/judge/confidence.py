"""The verdict on a motion: a calibrated probability from the evidence, and a reason in words.

Fitted to motions between simulated scans whose ground truth is known (pcreg/training/judge);
docs/benchmarks/confidence.md has the results on real ones. There are two models, because many more matches
of learned descriptors are right than of FPFH: a small network of ten numbers, and a logistic model of four.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from pcreg.registration.judge.confidence_terms import (
    HANDCRAFTED_TERMS,
    LEARNED_TERMS,
    OBSERVABILITY,
    ConfidenceTerm,
    few_inliers,
    values_of,
)
from pcreg.registration.judge.evidence import Evidence

MIN_INLIERS = 5  # with fewer a motion is as likely wrong as right, whatever the other evidence
# A motion that is more likely right than wrong ends the search, but for its alternative
MIN_CANDIDATE_PROBABILITY = 0.5
MIN_CONFIDENCE = 0.7  # from which a motion counts as registered
MIN_ALTERNATIVE_CONFIDENCE = 0.2  # of an alternative from which the answer counts as ambiguous
# Of a motion by itself: of those above it, one in 900 held-out simulated ones is wrong. So two of them are
# about equally likely, as in a symmetric scene, however the last digits differ.
MAX_PROBABILITY = 0.995
MAX_DEVIATIONS = 4.0  # from the mean of a term, beyond which a network has seen next to nothing


@dataclass(frozen=True)
class Verdict:
    registered: bool
    confidence: float  # probability that the motion is right; at least 0.7 exactly when registered
    reason: str  # in words, with the numbers
    ambiguous: bool  # refused, and an alternative is about as likely


class ConfidenceModel(ABC):
    """From the values of terms to the log-odds that a motion is right."""

    terms: tuple[ConfidenceTerm, ...]
    usual: np.ndarray  # (F,) values of the terms: their means over right motions
    min_retried_confidence = 0.0  # of a refused pair, from which it is worth trying at another voxel size

    @abstractmethod
    def log_odds(self, values: np.ndarray) -> np.ndarray:
        """(N,) of motions with values (N, F) of the terms."""

    def probability(self, evidence: Evidence) -> float:
        """That the motion is right, whatever other motions there are."""
        values = values_of(self.terms, evidence)[None]
        likely = float(1 / (1 + np.exp(-self.deciding(evidence).log_odds(values)[0])))
        return likely if evidence.inliers >= MIN_INLIERS else min(likely, 0.5)

    def deciding(self, evidence: Evidence) -> "ConfidenceModel":
        """This model, or the one that it has for such evidence."""
        return self

    def verdict(self, evidence: Evidence, alternatives: Sequence[Evidence] = ()) -> Verdict:
        """The verdict on a motion, given the evidence about it and about others between the same clouds.

        At most one of them is right: with odds o of each by itself, the first has the probability
        o_1 / (1 + o_1 + o_2 + ...).
        """
        likely = (min(self.probability(each), MAX_PROBABILITY) for each in (evidence, *alternatives))
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
            reason = few_inliers(evidence)
        else:
            reason = self.deciding(evidence).most_missed(evidence).rejection_reason(evidence)
        return Verdict(registered, confidence, reason, ambiguous)

    def most_missed(self, evidence: Evidence) -> ConfidenceTerm:
        """The term that would make the motion likelier than any other, were it as usual."""
        values = values_of(self.terms, evidence)
        mended = np.where(np.eye(len(values), dtype=bool), self.usual, values)
        return self.terms[int(np.argmax(self.log_odds(mended)))]


@dataclass(frozen=True)
class LogisticModel(ConfidenceModel):
    """Two numbers per term, in the order of the terms, none of the weights negative."""

    terms: tuple[ConfidenceTerm, ...]
    weights: tuple[float, ...]
    usual: tuple[float, ...]
    bias: float
    estimated: "LogisticModel | None" = None  # for clouds of which a viewpoint is estimated

    def log_odds(self, values: np.ndarray) -> np.ndarray:
        return self.bias + values @ np.array(self.weights)

    def deciding(self, evidence: Evidence) -> "LogisticModel":
        """Of the models that apply the one with the lower probability.

        So with an estimated viewpoint a motion is never likelier than with a known one.
        """
        if self.estimated is None or evidence.viewpoints_known:
            return self
        values = values_of(self.terms, evidence)
        return min(self, self.estimated, key=lambda model: float(model.log_odds(values)))


@dataclass(frozen=True, eq=False)
class NetworkModel(ConfidenceModel):
    """A few small networks of fully connected layers; their log-odds are averaged.

    No weight is negative, and half of the units of a layer bend upwards, half downwards: so the log-odds grow
    with every term, in any way that a monotonic function can (Runje and Shankaranarayana, ICML 2023).
    """

    # Of 700 simulated pairs that are refused with less none is registered at another voxel size, of 544
    # others 20 are
    min_retried_confidence = 0.03

    terms: tuple[ConfidenceTerm, ...]
    usual: np.ndarray
    mean: np.ndarray  # (F,), of the terms in training, and
    deviation: np.ndarray  # (F,)
    layers: tuple[
        tuple[np.ndarray, np.ndarray], ...
    ]  # weights (networks, in, out) and biases (networks, out)

    def log_odds(self, values: np.ndarray) -> np.ndarray:
        scaled = ((values - self.mean) / self.deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        *hidden, (weights, biases) = self.layers
        x = np.broadcast_to(scaled, (len(weights), *scaled.shape))
        for w, b in hidden:
            upwards, downwards = np.split(x @ w + b[:, None], 2, axis=-1)
            x = np.concatenate([np.logaddexp(0, upwards), -np.logaddexp(0, -downwards)], axis=-1)
        return (x @ weights + biases[:, None])[..., 0].mean(0)

    def probability(self, evidence: Evidence) -> float:
        """That the motion is right; at most 0.5 if the overlap leaves it a direction to slide in.

        Few simulated scans are so bare that a network could learn it from them.
        """
        likely = super().probability(evidence)
        return min(likely, 0.5) if evidence.observability.free else likely

    def most_missed(self, evidence: Evidence) -> ConfidenceTerm:
        return OBSERVABILITY if evidence.observability.free else super().most_missed(evidence)

    @staticmethod
    @cache
    def shipped() -> "NetworkModel":
        """That of weights/verdict.safetensors."""
        return NetworkModel.load(files("pcreg.weights").joinpath("verdict.safetensors").read_bytes())

    @staticmethod
    def load(content: bytes) -> "NetworkModel":
        """That of a file written by `python -m pcreg.training.judge fit`."""
        from safetensors.numpy import load

        found = {name: each.astype(np.float64) for name, each in load(content).items()}
        count = sum(name.startswith("weights") for name in found)
        layers = tuple((found[f"weights.{n}"], found[f"biases.{n}"]) for n in range(count))
        return NetworkModel(LEARNED_TERMS, found["usual"], found["mean"], found["deviation"], layers)


def _in_favour(evidence: Evidence) -> str:
    return (
        f"{evidence.inliers} of {evidence.matches} matches agree, {evidence.overlap:.0%} of the source "
        f"lies on the target, {evidence.rmse:.2g} m apart, and {evidence.free_space_violation:.0%} "
        "contradicts what was seen"
    )


HANDCRAFTED = LogisticModel(
    HANDCRAFTED_TERMS,
    weights=(1.87, 0.56, 3.40, 2.07),
    usual=(-0.05, -2.11, 3.04, -2.44),
    bias=-1.06,
    estimated=LogisticModel(
        HANDCRAFTED_TERMS,
        weights=(3.53, 1.64, 1.69, 1.50),
        usual=(-0.14, -2.36, 2.75, -2.41),
        bias=6.93,
    ),
)
