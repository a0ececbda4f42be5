from dataclasses import replace

import numpy as np
import pytest

from pcreg.registration.judge.confidence import (
    HANDCRAFTED,
    MAX_PROBABILITY,
    MIN_CONFIDENCE,
    MIN_INLIERS,
    NetworkModel,
)
from pcreg.registration.judge.observability import Observability
from tests.pcreg.evidences import CORRIDOR, evidence

LEARNED = NetworkModel.shipped()


def test_plenty_of_evidence_is_believed():
    verdict = LEARNED.verdict(evidence())
    assert verdict.registered
    assert LEARNED.probability(evidence()) > MAX_PROBABILITY
    assert verdict.confidence == pytest.approx(MAX_PROBABILITY)
    assert "300 of 1000 matches" in verdict.reason
    assert "60% of the source" in verdict.reason
    assert not verdict.ambiguous


# A motion with little in its favour, which is believed nevertheless
LITTLE = {
    "inliers": 20,
    "near_misses": 100,
    "inlier_thickness": 4.0,
    "plane_rmse": 0.3,
    "normal_agreement": 0.8,
    "contradiction": 0.05,
    "agreement": 0.4,
    "overlap_agreement": 1.0,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inliers": 4}, "only 4 of"),
        ({"contradiction": 0.4}, "40% stands where it looked through"),
        ({"same_side_ratio": 0.2}, "other side"),
        ({"observability": CORRIDOR}, "slide along (1.00, 0.00, 0.00)"),
        ({"agreement": -0.3, "overlap_agreement": -0.5}, "60% of the source lies on the target, but"),
        ({"inlier_thickness": 0.5}, "lie nearly in a plane"),
        ({"plane_rmse": 0.5, "normal_agreement": 0.5}, "cross more than they cover"),
    ],
)
def test_the_strongest_evidence_against_a_motion_is_the_reason(change, words):
    assert LEARNED.verdict(evidence(**LITTLE)).registered
    verdict = LEARNED.verdict(evidence(**LITTLE | change))
    assert not verdict.registered
    assert verdict.confidence < MIN_CONFIDENCE
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inliers": 4}, "only 4 of 1000"),
        ({"inliers": 30, "free_space_violation": 0.25}, "25% of one cloud stands where"),
        ({"inliers": 30, "same_side_ratio": 0.2}, "80% of the overlap was seen from the other side"),
    ],
)
def test_the_reason_where_nothing_is_learned(change, words):
    verdict = HANDCRAFTED.verdict(evidence(**change))
    assert not verdict.registered
    assert words in verdict.reason


@pytest.mark.parametrize(
    "better",
    [
        {"matches": 900},
        {"near_misses": 50},
        {"inlier_thickness": 6.0},
        {"plane_rmse": 0.2},
        {"normal_agreement": 0.9},
        {"contradiction": 0.02},
        {"agreement": 0.6},
        {"overlap_agreement": 1.5},
    ],
)
def test_more_evidence_never_lowers_what_is_learned(better):
    assert LEARNED.probability(evidence(**LITTLE | better)) > LEARNED.probability(evidence(**LITTLE))


def test_what_may_slide_is_never_believed_by_a_network():
    verdict = LEARNED.verdict(evidence(observability=CORRIDOR))
    assert verdict.confidence <= 0.5
    assert "slide along (1.00, 0.00, 0.00)" in verdict.reason


def test_more_of_any_term_never_lowers_the_log_odds():
    """Wherever the terms are, even where no motion was."""
    rng = np.random.default_rng(0)
    values = LEARNED.mean + LEARNED.deviation * rng.uniform(-6, 6, (500, len(LEARNED.mean)))
    for term in range(len(LEARNED.mean)):
        more = values.copy()
        more[:, term] += rng.uniform(0, 3, len(values)) * LEARNED.deviation[term]
        assert (LEARNED.log_odds(more) >= LEARNED.log_odds(values)).all()


@pytest.mark.parametrize(
    "better",
    [
        {"inliers": 12},
        {"matches": 900},
        {"free_space_violation": 0.0},
        {"same_side_ratio": 1.0},
        {"observability": Observability(0.2, ())},
    ],
)
def test_more_evidence_never_lowers_confidence(better):
    change = {
        "inliers": 10,
        "observability": Observability(0.05, ()),
        "free_space_violation": 0.03,
        "same_side_ratio": 0.7,
    }
    assert HANDCRAFTED.probability(evidence(**change | better)) > HANDCRAFTED.probability(evidence(**change))


@pytest.mark.parametrize("inliers", range(MIN_INLIERS))
def test_a_handful_of_matches_are_no_evidence(inliers):
    verdict = LEARNED.verdict(evidence(inliers=inliers, free_space_violation=0.0))
    assert not verdict.registered
    assert verdict.confidence <= 0.5


def test_of_two_motions_as_good_neither_is_believed():
    verdict = LEARNED.verdict(evidence(), [evidence(inliers=290)])
    assert not verdict.registered
    assert verdict.ambiguous
    assert verdict.confidence == pytest.approx(0.5, abs=0.05)
    assert "300 matches agree with this one, 290 with the other" in verdict.reason


def test_an_overlap_seen_from_both_sides_is_no_contradiction_while_most_of_it_agrees():
    def likely(ratio: float) -> float:
        return HANDCRAFTED.probability(evidence(inliers=30, same_side_ratio=ratio))

    assert likely(0.85) == likely(1.0)
    assert likely(0.5) < 0.7 < likely(1.0)


def test_a_poor_rival_hardly_matters():
    verdict = LEARNED.verdict(
        evidence(),
        [evidence(inliers=3, free_space_violation=0.2), evidence(inliers=2, free_space_violation=0.3)],
    )
    assert verdict.registered
    assert verdict.confidence == pytest.approx(MAX_PROBABILITY, abs=0.01)


def test_two_motions_beyond_doubt_are_ambiguous():
    better, good = evidence(inliers=800), evidence()
    assert LEARNED.probability(better) > LEARNED.probability(good) > MAX_PROBABILITY
    verdict = LEARNED.verdict(better, [good])
    assert not verdict.registered
    assert verdict.ambiguous
    assert "two motions fit about equally well" in verdict.reason


def test_odds_exclude_each_other():
    """Of three motions at most one is right."""
    first, second, third = (evidence(inliers=n, free_space_violation=0.06) for n in (17, 12, 8))
    likely = [min(LEARNED.probability(each), MAX_PROBABILITY) for each in (first, second, third)]
    odds = [p / (1 - p) for p in likely]
    assert LEARNED.verdict(first, [second, third]).confidence == pytest.approx(odds[0] / (1 + sum(odds)))


def test_a_model_has_a_number_per_term():
    for model in (HANDCRAFTED, HANDCRAFTED.estimated):
        assert len(model.terms) == len(model.weights) == len(model.usual)
        assert min(model.weights) >= 0
    assert len(LEARNED.terms) == len(LEARNED.mean) == len(LEARNED.deviation) == len(LEARNED.usual)
    assert min(weights.min() for weights, _ in LEARNED.layers) >= 0


def test_the_model_that_refuses_gives_the_reason():
    """The one for known viewpoints would have believed it, and misses something else most."""
    about = evidence(
        inliers=12, matches=2000, free_space_violation=0.0, same_side_ratio=1.0, viewpoints_known=False
    )
    assert HANDCRAFTED.estimated.probability(about) < HANDCRAFTED.probability(
        replace(about, viewpoints_known=True)
    )
    assert HANDCRAFTED.verdict(about).reason == HANDCRAFTED.estimated.verdict(about).reason
    assert HANDCRAFTED.verdict(about).confidence == HANDCRAFTED.estimated.verdict(about).confidence
