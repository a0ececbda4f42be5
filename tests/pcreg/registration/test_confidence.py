"""Verdicts of the shipped model."""

import numpy as np
import pytest

from pcreg.registration.judge.confidence import (
    MAX_PROBABILITY,
    MIN_CONFIDENCE,
    MIN_INLIERS,
    TERMS,
    ConfidenceModel,
    values_of,
)
from pcreg.registration.judge.observability import Observability
from tests.pcreg.evidences import CORRIDOR, evidence

MODEL = ConfidenceModel.shipped()


def test_plenty_of_evidence_is_believed():
    verdict = MODEL.verdict(evidence())
    assert verdict.registered
    assert MODEL.probability(evidence()) == MAX_PROBABILITY
    assert verdict.confidence == pytest.approx(MAX_PROBABILITY)
    assert "300 inliers of 1000 matches" in verdict.reason
    assert "overlap 60%, RMS" in verdict.reason
    assert not verdict.ambiguous


# A motion with little in its favour, which is believed nevertheless
LITTLE = {
    "inliers": 20,
    "inlier_thickness": 4.0,
    "plane_rmse": 0.3,
    "contradiction": 0.007,
    "curved_contradiction": 0.15,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inliers": 4}, "only 4 inliers of"),
        ({"contradiction": 0.4, "curved_contradiction": 0.4}, "40% of one cloud"),
        ({"curved_contradiction": 0.7}, "70% of the edges and small objects"),
        ({"same_side_ratio": 0.0}, "other side"),
        ({"observability": CORRIDOR, "contradiction": 0.4}, "slide along (1.00, 0.00, 0.00)"),
        ({"inlier_thickness": 0.5}, "lie nearly in a plane"),
        ({"plane_rmse": 0.5}, "the overlap is 60%, but its surfaces lie 0.50 voxels apart"),
    ],
)
def test_the_strongest_evidence_against_a_motion_is_the_reason(change, words):
    assert MODEL.verdict(evidence(**LITTLE)).registered
    verdict = MODEL.verdict(evidence(**LITTLE | change))
    assert not verdict.registered
    assert verdict.confidence < MIN_CONFIDENCE
    assert words in verdict.reason


def test_more_of_any_term_never_lowers_the_log_odds():
    """This holds for any values of the terms, even those that no motion had."""
    rng = np.random.default_rng(0)
    values = MODEL.mean + MODEL.deviation * rng.uniform(-6, 6, (500, len(TERMS)))
    for term in range(len(TERMS)):
        more = values.copy()
        more[:, term] += rng.uniform(0, 3, len(values)) * MODEL.deviation[term]
        assert (MODEL.log_odds(more) >= MODEL.log_odds(values)).all()
    within = (values - MODEL.mean).clip(-4 * MODEL.deviation, 4 * MODEL.deviation)
    np.testing.assert_allclose(MODEL.log_odds(MODEL.mean + within), MODEL.log_odds(values))
    much, more = (evidence(inlier_thickness=n, observability=Observability(n / 150, ())) for n in (20, 40))
    np.testing.assert_array_equal(values_of(much), values_of(more))


@pytest.mark.parametrize("flaw", [{"observability": CORRIDOR}, {"inliers": 0}, {"inliers": MIN_INLIERS - 1}])
def test_a_slide_and_a_handful_of_matches_are_never_believed(flaw):
    verdict = MODEL.verdict(evidence(free_space_violation=0.0, **flaw))
    assert not verdict.registered
    assert verdict.confidence <= 0.5


@pytest.mark.parametrize("count", [2, 7])
def test_of_motions_as_good_none_is_believed(count):
    verdict = MODEL.verdict(evidence(), [evidence(inliers=290)] * (count - 1))
    assert verdict.ambiguous
    assert verdict.confidence == pytest.approx(1 / count, abs=0.05)
    assert "one with 300 inliers, the other with 290" in verdict.reason


VERDICTS = {"registered": ([0.71], [0.99, 0.1, 0.02]), "refused": ([0.69], [0.4, 0.29])}
VERDICTS["ambiguous"] = [0.4, 0.05, 0.31], [0.9, 0.6, 0.8]


@pytest.mark.parametrize(("verdict", "cases"), VERDICTS.items())
def test_odds_exclude_each_other(monkeypatch, verdict, cases):
    """At most one of several motions is right."""
    monkeypatch.setattr(ConfidenceModel, "probability", lambda _, each: each.overlap)
    for likely in cases:
        first, *others = (evidence(overlap=p, inliers=round(100 * p)) for p in likely)
        found, odds = MODEL.verdict(first, others), [p / (1 - p) for p in likely]
        assert found.confidence == pytest.approx(odds[0] / (1 + sum(odds)))
        assert (found.registered, found.ambiguous) == (verdict == "registered", verdict == "ambiguous")
        assert (f"the other with {100 * max(likely[1:], default=0):.0f};" in found.reason) is found.ambiguous
