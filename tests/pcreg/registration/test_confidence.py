from dataclasses import replace

import pytest

from pcreg.registration.confidence import HANDCRAFTED, LEARNED, MIN_CONFIDENCE, MIN_INLIERS, TERMS, terms
from pcreg.registration.observability import Observability
from tests.pcreg.evidences import CORRIDOR, evidence


def test_plenty_of_evidence_is_believed():
    verdict = LEARNED.verdict(evidence())
    assert verdict.registered
    assert verdict.confidence > 0.95
    assert verdict.confidence == LEARNED.probability(evidence())
    assert "300 of 1000 matches" in verdict.reason
    assert "60% of the source" in verdict.reason
    assert not verdict.ambiguous


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inliers": 4}, "only 4 of"),
        (
            {
                "inliers": 6,
                "matches": 3000,
                "free_space_violation": 0.035,
                "observability": Observability(0.06, ()),
            },
            "only 6 of 3000",
        ),
        ({"free_space_violation": 0.25}, "looked through"),
        ({"same_side_ratio": 0.2}, "other side"),
        ({"observability": CORRIDOR, "free_space_violation": 0.02}, "slide along (1.00, 0.00, 0.00)"),
        ({"agreement": -0.3, "overlap_agreement": -0.5}, "60% of the source lies on the target, but"),
    ],
)
def test_the_strongest_evidence_against_a_motion_is_the_reason(change, words):
    verdict = LEARNED.verdict(evidence(**change))
    assert not verdict.registered
    assert verdict.confidence < MIN_CONFIDENCE
    assert words in verdict.reason


@pytest.mark.parametrize("model", [LEARNED, HANDCRAFTED])
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
def test_more_evidence_never_lowers_confidence(better, model):
    change = {
        "inliers": 10,
        "observability": Observability(0.05, ()),
        "free_space_violation": 0.03,
        "same_side_ratio": 0.7,
    }
    assert model.probability(evidence(**change | better)) > model.probability(evidence(**change))


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
    assert LEARNED.probability(evidence(same_side_ratio=0.85)) == LEARNED.probability(
        evidence(same_side_ratio=1.0)
    )
    assert (
        LEARNED.probability(evidence(same_side_ratio=0.5))
        < 0.2
        < LEARNED.probability(evidence(same_side_ratio=1.0))
    )


def test_a_poor_rival_hardly_matters():
    verdict = LEARNED.verdict(
        evidence(),
        [evidence(inliers=3, free_space_violation=0.2), evidence(inliers=2, free_space_violation=0.3)],
    )
    assert verdict.registered
    assert verdict.confidence == pytest.approx(LEARNED.probability(evidence()), abs=0.01)


def test_odds_exclude_each_other():
    """Of three motions at most one is right."""
    first, second, third = (evidence(inliers=n, free_space_violation=0.06) for n in (17, 12, 8))
    odds = [p / (1 - p) for p in map(LEARNED.probability, (first, second, third))]
    assert LEARNED.verdict(first, [second, third]).confidence == pytest.approx(odds[0] / (1 + sum(odds)))


@pytest.mark.parametrize("model", [LEARNED, LEARNED.estimated])
def test_where_descriptors_agree_a_motion_is_likelier(model):
    for name, values in (("agreement", (-0.2, 0.1, 0.5)), ("overlap_agreement", (-0.3, 0.5, 1.5))):
        likely = [model.probability(evidence(inliers=15, **{name: value})) for value in values]
        assert likely == sorted(set(likely))


@pytest.mark.parametrize("model", [LEARNED, HANDCRAFTED])
def test_a_table_has_a_number_per_term(model):
    assert terms(evidence()).shape == (len(model.weights),) == (len(model.usual),) == (len(TERMS),)
    assert min(model.weights) >= 0


def test_little_agreement_is_plenty_for_what_is_not_learned():
    few = evidence(inliers=40, matches=1000)
    assert HANDCRAFTED.probability(few) > LEARNED.probability(few)


@pytest.mark.parametrize("model", [LEARNED, HANDCRAFTED])
def test_the_model_that_refuses_gives_the_reason(model):
    """The one for known viewpoints would have believed it, and misses something else most."""
    about = evidence(
        inliers=12, matches=2000, free_space_violation=0.0, same_side_ratio=1.0, viewpoints_known=False
    )
    assert model.estimated.probability(about) < model.probability(replace(about, viewpoints_known=True))
    assert model.verdict(about).reason == model.estimated.verdict(about).reason
    assert model.verdict(about).confidence == model.estimated.verdict(about).confidence
