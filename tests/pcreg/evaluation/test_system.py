"""The system's answers, scored: on answers known in advance, with `register` itself in test_evaluate.py."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from pcreg.evaluation import metrics, runner
from pcreg.evaluation.protocol import Setup, caption
from pcreg.evaluation.report import report
from pcreg.evaluation.runner import INDOOR_GATES, OUTDOOR_GATES, System
from pcreg.evaluation.tables import measured, tables
from pcreg.geometry.se3 import se3
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import Records
from tests.pcreg.evaluation.toys import Rooms

ASIDE = se3(np.eye(3), np.array([0.0, 0.5, 0.0]))  # half a metre beside the truth: outside the gate


class Views(Rooms):
    """Two scenes of three pairs each; a pair can be recognized from its clouds."""

    outdoor = False
    viewpoint = "sensor"


@dataclass(frozen=True)
class Told(System):
    """A system with given answers to the six pairs: the error and the verdict of each."""

    answers: tuple = (
        (np.eye(4), True),
        (np.eye(4), True),
        (ASIDE, True),
        (np.eye(4), False),
        (ASIDE, False),
        (None, False),
    )

    def register(self, source, target, seed):
        views = Views()
        which = next(
            number
            for number, pair in enumerate(views.pairs)
            if np.array_equal(views.cloud(pair.source), source)
            and np.array_equal(views.cloud(pair.target), target)
        )
        error, registered = self.answers[which]
        if error is None:
            raise InputError("target: fewer than 10 points are left")
        T = error @ views.pairs[which].T_target_source
        more = {"voxel": 0.2, "reason": "so it <is>", "notes": ("mind the gap",), "inliers": 30}
        confidence = 0.9 if registered else 0.4
        return SimpleNamespace(T_target_source=T, registered=registered, confidence=confidence, **more)


@pytest.fixture
def scored(tmp_path):
    system = Told("system").on(Views())
    records = Records(tmp_path / "records.jsonl", {})
    return system, runner.run_system(Views(), system, records, seeds=(0, 1), workers=0)


def setup_of(system):
    return Setup("rooms", system, "fcgf", "abc", "register", (0, 1), {"numpy": "2"})


def test_verdicts_are_counted(scored):
    system, records = scored
    figures, spread = measured(records, setup_of(system), None)
    assert figures["RR_0.3m_15deg"] == figures["RR_rmse"] == 0.5  # refused or not
    assert figures["pairs_RR"] == 2  # of each three pairs two follow one another
    assert [figures[name] for name in metrics.VERDICTS] == [3, 2, 1]
    assert figures["RTE_joint_mean"] == pytest.approx(0, abs=1e-9)
    assert figures["seconds_register"] >= 0
    assert spread["accepted"] == 0
    assert "IR" not in figures
    trial = records[3]["trials"][1]
    assert (trial["seed"], trial["registered"], trial["reason"]) == (1, False, "so it <is>")
    assert records[0]["overlap_measured"] == 1.0
    lost = records[5]["trials"][0]
    assert (lost["T_target_source"], lost["RTE"], lost["voxel"]) == (None, None, None)
    assert lost["reason"] == "target: fewer than 10 points are left"
    assert records[5]["overlap_measured"] is None


def test_what_was_accepted_wrongly_is_listed_and_shown(scored, tmp_path):
    system, records = scored
    setup = setup_of(system)
    main, _, listed = tables(records, setup)
    assert {"accepted", "accepted right", "refused right"} < set(main.header)
    assert listed.title == "rooms: accepted and wrong, 2"  # one pair with both seeds
    wrong = Views().pairs[2].name
    assert [row[:4] for row in listed.rows] == [[wrong, seed, "0.900", "0.500"] for seed in "01"]
    report(records, setup, Views(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "accepted and wrong, 2" in text
    assert "accepted with confidence 0.90: so it &lt;is&gt;" in text
    assert "overlap unknown, refused with confidence 0.00: target: fewer than 10" in text
    words = caption(records, setup)
    assert "viewpoint=sensor" in words
    assert "gates=[[0.3, 15.0]]" in words


def test_gates_and_viewpoint_are_the_data_sets_unless_given():
    streets = SimpleNamespace(outdoor=True, viewpoint="auto")
    found = System("system").on(streets)
    assert (found.gates, found.viewpoint) == (OUTDOOR_GATES, "auto")
    assert System("system").on(Views()).gates == INDOOR_GATES
    given = System("system", gates=[[1, 2]], viewpoint="auto").on(Views())
    assert (given.gates, given.viewpoint) == (((1.0, 2.0),), "auto")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"descriptor": "fpfh", "weights": "w.safetensors"}, "fpfh takes none"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_an_impossible_system_is_refused(wrong, named):
    with pytest.raises(InputError, match=named):
        System("system", **wrong)
