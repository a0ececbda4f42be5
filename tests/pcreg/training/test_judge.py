"""Questions, answers and the fit of a verdict, on cases with a given outcome."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.io.pairs import Pair
from pcreg.registration.judge.confidence import ConfidenceModel
from pcreg.registration.registrar import Registrar
from pcreg.training.judge import calibration_error, fit_network, reliability
from pcreg.training.judge_answers import SCENES_PER_HOUSE, answers, evidence_of, is_right, merged, questions
from tests.pcreg.evidences import CORRIDOR, evidence


class Scenes:
    """Two scenes of three clouds each."""

    name, outdoor = "scenes", False
    left_out = ()

    def __init__(self, scenes=("a", "b")):
        self.pairs = [Pair(f"{s}/{n}", f"{s}/{n - 1}", np.eye(4), scene=s) for s in scenes for n in (1, 2)]


def numbers(**some):
    return dict.fromkeys(("true", "apart", "alike", "unrelated", "mirrored"), 0) | some


def test_rooms_of_a_house_and_places_of_a_scene_are_strangers():
    scenes = Scenes([f"scene-{n}" for n in (0, SCENES_PER_HOUSE - 1, SCENES_PER_HOUSE)])
    scenes.apart = [Pair("scene-0/0", "scene-0/2", np.eye(4), scene="scene-0")]
    asked = questions(scenes, numbers(alike=20, apart=5), seed=0)
    assert [question.kind for question in asked] == ["apart"] + 20 * ["alike"]
    assert asked[0].T_target_source is not None
    found = {frozenset(q[:-2] for q in (each.source, each.target)) for each in asked[1:]}
    assert found == {frozenset({"scene-0", f"scene-{SCENES_PER_HOUSE - 1}"})}


def test_a_network_learns_what_tells_right_from_wrong(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 10))
    right = values[:, 0] + np.minimum(values[:, 1], 0) + 0.3 * rng.normal(size=2000) > 0
    out = tmp_path / "network.safetensors"
    fit_network(values[:1500], right[:1500], np.ones(1500), out)
    model = ConfidenceModel.load(out.read_bytes())
    found = model.log_odds(values[1500:]) > 0
    assert (found == right[1500:]).mean() > 0.85
    fit_network(values[:1500], right[:1500], np.ones(1500), tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == out.read_bytes()


def test_questions_of_every_kind():
    asked = questions(Scenes(), numbers(true=3, unrelated=5, mirrored=4), seed=0, hidden=0.9)
    kinds = [question.kind for question in asked]
    assert [kinds.count(kind) for kind in ("true", "unrelated", "mirrored")] == [3, 5, 4]
    for question in asked:
        scenes = question.source[0], question.target[0]
        assert (scenes[0] != scenes[1]) == (question.kind == "unrelated")
        assert (question.T_target_source is not None) == (question.kind == "true")
    assert {question.viewpoint for question in asked} == {"sensor", "auto"}
    assert {question.merged for question in asked} == {True, False}
    for question in asked:
        assert question.viewpoint == "auto" or not question.merged
        assert question.viewpoint == "sensor" or question.kind != "mirrored"
    again = questions(Scenes(), numbers(true=3, unrelated=5, mirrored=4), seed=0, hidden=0.9)
    described = [[(q.source, q.target, q.viewpoint, q.merged) for q in each] for each in (asked, again)]
    assert described[0] == described[1]


def test_a_merged_cloud_holds_those_beside_it_but_the_one_it_is_matched_with():
    scenes = Scenes("a")
    scenes.cloud = lambda name: np.full((1, 3), float(name[-1]))
    found = merged(scenes, "a/1", without="a/0", voxel=0.1)
    assert sorted(found[:, 0].tolist()) == [1.0, 2.0]
    assert len(merged(scenes, "a/0", without="a/1", voxel=0.1)) == 1


@pytest.mark.parametrize(
    ("degrees", "metres", "outdoor", "right"),
    [
        (4, 1, True, True),
        (6, 0, True, False),
        (0, 2.1, True, False),
        (6, 0, False, True),
        (4, 1, False, False),
    ],
)
def test_a_motion_with_small_errors_is_right(degrees, metres, outdoor, right):
    T = se3(rotation_about((0, 0, 1), degrees), np.array([metres, 0, 0]))
    assert is_right(T, np.eye(4), outdoor) == right
    assert not is_right(T, None, outdoor)


@pytest.mark.parametrize("hidden", [0.0, 1.0])
def test_a_right_motion_is_right_in_the_frames_of_the_data_set(room, hidden):
    scenes = Scenes("a")
    scenes.pairs = [Pair("source", "target", room.T_target_source)]
    scenes.cloud = lambda name: getattr(room, name)
    asked = questions(scenes, numbers(true=1), seed=1, hidden=hidden)
    scale = Registrar(descriptor="fpfh").at(0.1)
    (answer,) = answers(scenes, scale, asked, workers=0)
    assert answer["kind"] == "true"
    assert answer["motions"][0]["right"]


def test_evidence_comes_back_from_its_file():
    for each in (evidence(), evidence(observability=CORRIDOR)):
        assert evidence_of(json.loads(json.dumps({"evidence": asdict(each)}))) == each


def test_a_logistic_model_is_found_again(tmp_path):
    """Also from rows that count several times."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 3)) * [1, 5, 1]
    chance = 1 / (1 + np.exp(-(2 * X[:, 0] + 0.5 * X[:, 1] - 0.3 * X[:, 2] - 1)))
    right, counts = rng.random(len(X)) < chance, rng.integers(1, 4, len(X))
    fit_network(X, right, counts, tmp_path / "fitted", hidden=())
    model = ConfidenceModel.load((tmp_path / "fitted").read_bytes())
    ((weights, _),) = model.layers
    first, second, third = weights[..., 0].mean(0) / model.deviation
    assert (first, second) == pytest.approx((2, 0.5), rel=0.3)
    assert third < 0.1  # more of a trait never makes a motion less likely
    assert calibration_error(chance, right) < 0.04
    assert calibration_error(np.ones(len(X)), right) == pytest.approx(1 - right.mean())


def test_reliability_is_that_of_each_bin():
    confidence, right = np.array([0.05, 0.07, 0.95, 1.0]), np.array([False, True, True, True])
    assert list(reliability(confidence, right)) == [
        (2, pytest.approx(0.06), 0.5),
        (2, pytest.approx(0.975), 1.0),
    ]
