import pytest

from pcreg.verdict import DOUBT, MINIMUM_INLIERS, MINIMUM_OVERLAP, MINIMUM_RATIO, judge

GOOD = {"matches": 1000, "inliers": 300, "overlap": 0.6, "intrusion": 0.01, "rmse": 0.01}


def test_plenty_of_evidence_is_believed():
    verdict = judge(**GOOD)
    assert verdict.registered
    assert verdict.confidence == pytest.approx(0.9)  # overlap is three times what is needed
    assert "300 of 1000 matches" in verdict.reason
    assert "60%" in verdict.reason


def test_exactly_at_the_thresholds_confidence_is_one_half():
    verdict = judge(matches=100, inliers=MINIMUM_INLIERS, overlap=MINIMUM_OVERLAP, intrusion=0.0, rmse=0.01)
    assert verdict.registered
    assert verdict.confidence == 0.5


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"inliers": MINIMUM_INLIERS - 1}, "matches agree"),
        ({"matches": 100_000, "inliers": int(100_000 * MINIMUM_RATIO) - 1}, "matches agree"),
        ({"overlap": MINIMUM_OVERLAP - 0.01}, "smaller cloud"),
        ({"intrusion": 0.2}, "looked through"),
    ],
)
def test_each_number_can_refuse(change, word):
    verdict = judge(**(GOOD | change))
    assert not verdict.registered
    assert verdict.confidence < 0.5
    assert word in verdict.reason


@pytest.mark.parametrize("matches", [0, 5])
def test_no_evidence_is_no_confidence(matches):
    verdict = judge(matches=matches, inliers=0, overlap=0.0, intrusion=0.0, rmse=0.0)
    assert not verdict.registered
    assert verdict.confidence == 0


@pytest.mark.parametrize("better", [{"inliers": 310}, {"overlap": 0.7}, {"matches": 900}, {"intrusion": 0.0}])
def test_more_evidence_never_lowers_confidence(better):
    assert judge(**(GOOD | better)).confidence >= judge(**GOOD).confidence


def test_doubt_doubles_the_inliers_needed():
    twice = {"matches": 100, "overlap": 0.9, "intrusion": DOUBT, "rmse": 0.01}
    assert judge(inliers=2 * MINIMUM_INLIERS, **twice).registered
    assert not judge(inliers=2 * MINIMUM_INLIERS - 1, **twice).registered


def test_it_takes_twice_the_inliers_where_no_sensor_is_known():
    numbers = {"matches": 100, "overlap": 0.6, "intrusion": 0.0, "rmse": 0.01, "sensors_known": False}
    assert not judge(inliers=2 * MINIMUM_INLIERS - 1, **numbers).registered
    assert judge(inliers=2 * MINIMUM_INLIERS, **numbers).registered
