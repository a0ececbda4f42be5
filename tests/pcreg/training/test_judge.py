"""Questions, answers and the fit of a verdict, on cases with a given outcome."""

import numpy as np
import pytest

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.io.pairs import Pair
from pcreg.registration.judge.confidence import ConfidenceModel
from pcreg.registration.registrar import Registrar
from pcreg.runtime.errors import InputError
from pcreg.training.judge import answered, calibration_error, fit, reliability
from pcreg.training.judge_answers import SCENES_PER_HOUSE, Answers, answers, is_right, merged, questions


class Scenes:
    """Two scenes of three clouds each."""

    name, outdoor = "scenes", False
    left_out = ()

    def __init__(self, scenes=("a", "b")):
        self.pairs = [Pair(f"{s}/{n}", f"{s}/{n - 1}", np.eye(4), scene=s) for s in scenes for n in (1, 2)]


def numbers(**some):
    return dict.fromkeys(("true", "apart", "alike", "unrelated", "mirrored", "slid"), 0) | some


def test_rooms_of_a_house_and_places_of_a_scene_are_strangers():
    scenes = Scenes([f"scene-{n}" for n in (0, SCENES_PER_HOUSE - 1, SCENES_PER_HOUSE)])
    scenes.apart = [Pair("scene-0/0", "scene-0/2", np.eye(4), scene="scene-0")]
    asked = questions(scenes, numbers(alike=20, apart=5), seed=0)
    assert [question.kind for question in asked] == ["apart"] + 20 * ["alike"]
    assert asked[0].T_target_source is not None
    found = {frozenset(q[:-2] for q in (each.source, each.target)) for each in asked[1:]}
    assert found == {frozenset({"scene-0", f"scene-{SCENES_PER_HOUSE - 1}"})}


def lists(rng, Q=2000, H=4, F=5) -> Answers:
    """Questions with one right hypothesis or none; two of the values raise its probability."""
    values = rng.normal(size=(Q, H, F)).astype(np.float32)
    values[: Q // 4, 2:] = np.nan  # fewer hypotheses
    score = 2 * values[..., 0] + np.minimum(values[..., 1], 0) - 1 + rng.gumbel(size=(Q, H)) / 3
    score = np.concatenate([np.nan_to_num(score, nan=-np.inf), np.zeros((Q, 1))], axis=1)
    right = np.eye(H + 1, dtype=bool)[score.argmax(1)][:, :H]
    place = np.tile(np.arange(H), (Q, 1))
    return Answers(np.full(Q, "data"), np.full(Q, "true"), values, np.zeros((Q, H), dtype=bool), place, right)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    asked = lists(np.random.default_rng(0))
    out = tmp_path_factory.mktemp("fit") / "network.safetensors"
    fit(Answers(*(column[:1500] for column in asked)), out)
    return ConfidenceModel.load(out.read_bytes()), Answers(*(column[1500:] for column in asked)), out


def test_a_network_learns_which_hypothesis_is_right(fitted):
    model, held_out, _ = fitted
    confidence, right = answered(held_out, model)
    some = held_out.right.any(1)
    assert right[some].mean() > 0.8
    assert confidence[right].mean() > confidence[~right].mean() + 0.3
    assert calibration_error(confidence, right) < 0.06


def test_the_same_answers_give_the_same_file(tmp_path):
    asked = lists(np.random.default_rng(1), Q=100)
    for name in ("one", "again"):
        fit(asked, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()


def test_answers_without_a_right_one_are_refused(tmp_path):
    asked = lists(np.random.default_rng(1), Q=10)
    with pytest.raises(InputError, match="no answer is right"):
        fit(asked._replace(right=np.zeros_like(asked.right)), tmp_path / "network")


def test_a_term_that_is_left_out_counts_for_nothing(tmp_path):
    asked = lists(np.random.default_rng(2), Q=200)
    fit(asked, tmp_path / "without", without=[0])
    model = ConfidenceModel.load((tmp_path / "without").read_bytes())
    values = np.zeros((2, 5), dtype=np.float32)
    values[1, 0] = 3.0
    few, many = model.log_odds(values)
    assert few == many


def test_hypotheses_at_one_place_count_once(fitted):
    model, held_out, _ = fitted
    rows = held_out.right.any(1)
    asked = Answers(*(column[rows] for column in held_out))
    by_hypothesis = ("values", "bounded", "place", "right")
    doubled = {name: np.concatenate([getattr(asked, name)] * 2, axis=1) for name in by_hypothesis}
    copied = asked._replace(**doubled)
    for once, twice in zip(answered(asked, model), answered(copied, model), strict=True):
        np.testing.assert_allclose(once, twice)


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
    found = answers(scenes, scale, asked, workers=0)
    assert found.kind.tolist() == ["true"]
    assert found.right[0, 0]
    assert np.isfinite(found.values[0, 0]).all()


def test_a_motion_beside_the_truth_is_judged_alone(room):
    scenes = Scenes("a")
    scenes.pairs = [Pair("source", "target", room.T_target_source)]
    scenes.cloud = lambda name: getattr(room, name)
    asked = questions(scenes, numbers(true=1, slid=1), seed=1)
    off = asked[1].start[:3, 3] - room.T_target_source[:3, 3]
    assert 0.3 <= np.linalg.norm(off) <= 1.0
    found = answers(scenes, Registrar(descriptor="fpfh").at(0.1), asked[1:], workers=0)
    assert np.isfinite(found.values).all(2).sum() == 1
    scenes.cloud = lambda name: room.source[:3]
    with pytest.raises(InputError, match="scenes: no pair of clouds has enough points"):
        answers(scenes, Registrar(descriptor="fpfh").at(0.1), asked[1:], workers=0)


def test_reliability_is_that_of_each_bin():
    confidence, right = np.array([0.05, 0.07, 0.95, 1.0]), np.array([False, True, True, True])
    assert list(reliability(confidence, right)) == [
        (2, pytest.approx(0.06), 0.5),
        (2, pytest.approx(0.975), 1.0),
    ]
