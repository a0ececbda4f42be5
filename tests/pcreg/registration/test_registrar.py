from collections import Counter
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from pcreg import register
from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import rotation_error, se3, translation_error
from pcreg.geometry.voxel_size import Sample
from pcreg.registration.clouds import prepared
from pcreg.registration.estimation.icp import MAX_ITERATIONS, refine
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.registration.strategy import single_scale
from pcreg.registration.strategy.scales import further_voxels, near_training, usual_voxel
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room

VOXEL = 0.08


@pytest.fixture(scope="module")
def registrar() -> Registrar:
    return Registrar(descriptor="fpfh", voxel=VOXEL)


@pytest.fixture(scope="module")
def found(room, registrar) -> Registration:
    return registrar.register(room.source, room.target)


def test_a_known_motion_comes_back(room, found):
    assert found.registered
    assert found.confidence > 0.8
    assert rotation_error(found.T_target_source, room.T_target_source) < 0.5
    assert translation_error(found.T_target_source, room.T_target_source) < 0.03
    assert found.overlap == pytest.approx(room.overlap, abs=0.2)
    assert found.inliers > 50
    assert 0 < found.rmse < VOXEL
    assert list(found.seconds) == ["describe", "match", "estimate", "refine", "verdict"]


def test_a_full_refinement_that_slides_away_is_undone(room, registrar, monkeypatch):
    def sliding(source, target, motions, distance, iterations):
        slid = se3(np.eye(3), [0.5 * (iterations == MAX_ITERATIONS), 0, 0])
        found = refine(source, target, motions, distance, iterations)
        return [replace(each, T_target_source=slid @ each.T_target_source) for each in found]

    monkeypatch.setattr(single_scale, "refine", sliding)
    found = registrar.register(room.source, room.target)
    assert found.registered
    assert translation_error(found.T_target_source, room.T_target_source) < 0.1


@pytest.mark.parametrize(("promising", "refined"), [(0.0, [2, 10]), (0.03, [2])])
def test_a_hopeless_motion_is_refined_no_further(room, registrar, monkeypatch, promising, refined):
    scale, spy = replace(registrar.at(VOXEL), promising=promising), Mock(wraps=refine)
    monkeypatch.setattr(single_scale.Hypothesis, "probability", 0.02)
    monkeypatch.setattr(single_scale, "refine", spy)
    scale.hypotheses(*(registrar.prepare(each).at(scale.descriptor) for each in (room.source, room.target)))
    assert [len(call.args[2]) for call in spy.call_args_list] == refined


class Own(FPFH):
    """A user's own descriptor with the members that the interface requires."""

    name = label = "own"


def test_a_descriptor_may_be_an_object(room, registrar, found):
    own = Registrar(descriptor=Own(VOXEL)).register(room.source, room.target)
    assert (own.T_target_source == found.T_target_source).all()
    assert own.confidence == found.confidence


def test_what_is_no_descriptor_or_prior_is_refused(room, registrar):
    with pytest.raises(InputError, match="is unknown; use fcgf, fpfh or an object"):
        Registrar(descriptor=object())
    with pytest.raises(InputError, match="or an object"):
        Registrar(descriptor=Own)  # a class
    without_length = Own(VOXEL)
    without_length.voxel = 0.0
    with pytest.raises(InputError, match=r"voxel 0\.0 is not a size"):
        Registrar(descriptor=without_length)
    for option in ({"voxel": 0.1}, {"weights": "w.safetensors"}):
        with pytest.raises(InputError, match="the descriptor is an object; leave this out"):
            Registrar(descriptor=FCGF.load(), **option)
    with pytest.raises(InputError, match=r"prior is of type bool; use pcreg.Prior\(gravity=True\)"):
        registrar.register(room.source, room.target, prior=True)


def test_large_clouds_do_not_keep_their_points_and_come_out_the_same(room, registrar, found, monkeypatch):
    monkeypatch.setattr(prepared, "MAX_KEPT_POINTS", 100)
    clouds = [registrar.prepare(points) for points in (room.source, room.target)]
    again = registrar.register(*clouds)
    assert (again.T_target_source == found.T_target_source).all()
    assert again.confidence == found.confidence
    for cloud in clouds:
        assert cloud.points is not cloud.points
        np.testing.assert_array_equal(cloud.points, cloud.points)


@pytest.mark.parametrize(("number", "side"), [(1, "source"), (2, "target")])
def test_different_rooms_are_not_registered(room, registrar, number, side):
    other = getattr(stored_room(number), side)
    assert not registrar.register(room.source, other).registered


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.empty((0, 3)), "holds no points"),
        (np.zeros((1, 3)), "too few at any voxel"),
        (np.eye(3), "too few at any voxel"),
        (np.ones((500, 3)), "too few at any voxel"),
        (np.random.default_rng(0).uniform(0, 0.2, (500, 3)), "try a voxel of 0.0[23]"),
        (np.random.default_rng(0).uniform(0, 0.2, (40, 3)), "needed; take a scan with more points"),
        (np.zeros((5, 2)), r"shape \(5, 2\)"),
        (np.full((50, 3), np.nan), "holds no points"),
    ],
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_bad_clouds_are_refused_by_name(room, registrar, points, words, side):
    clouds = {"source": room.source, "target": room.target} | {side: points}
    with pytest.raises(InputError, match=words) as caught:
        registrar.register(**clouds)
    assert str(caught.value).startswith(f"{side}: ")


def assert_same(one: Registration, other: Registration) -> None:
    """Assert that results have the same bits, except for their seconds."""
    arrays = ("T_target_source", "matches", "matched_points")
    assert all((getattr(one, name) == getattr(other, name)).all() for name in arrays)
    assert one.to_dict() == other.to_dict()


@pytest.fixture(scope="module")
def clouds(room) -> dict[str, np.ndarray]:
    """Two of one room, the first with rows that no sensor saw; a mirrored one; and one of another room."""
    other = stored_room(1).target
    spoilt = np.concatenate([[[np.nan, 0, 0]], np.zeros((5, 3)), room.source[::4]])
    return {"a": spoilt, "b": room.target[::4], "m": room.source[::4] * [-1, 1, 1], "o": other[::8]}


@pytest.mark.parametrize("settings", [{"descriptor": "fpfh"}, {"voxel": 0.2}], ids=["scales", "one"])
def test_prepared_clouds_in_many_pairs_give_what_register_gives(clouds, tmp_path, settings):
    """Earlier pairs have no influence, on pairs that register or those that need further scales."""
    registrar = Registrar(**settings)
    prepared = {name: registrar.prepare(points) for name, points in clouds.items()}
    np.save(tmp_path / "b.npy", clouds["b"])
    verdicts = set()
    for name in "moa":
        alone = register(clouds[name], clouds["b"], seed=3, **settings)
        assert_same(registrar.register(prepared[name], prepared["b"], seed=3), alone)
        verdicts.add(alone.registered)
    assert verdicts == {True, False}
    np.testing.assert_array_equal(alone.transform(prepared["b"]), alone.transform(clouds["b"]))
    assert_same(registrar.register(clouds["a"], tmp_path / "b.npy", seed=3), alone)


def test_each_cloud_is_described_once_per_scale(clouds, monkeypatch):
    described = Counter()

    def describe(self, points, viewpoints):
        described[self.voxel, points.tobytes()] += 1
        return original(self, points, viewpoints)

    original = FPFH.describe
    monkeypatch.setattr(FPFH, "describe", describe)
    registrar = Registrar(descriptor="fpfh")
    prepared = [registrar.prepare(clouds[name]) for name in "abo"]
    for one, other in combinations(prepared, 2):
        registrar.register(one, other)
    assert described
    assert set(described.values()) == {1}


def test_matches_are_rows_of_the_clouds_as_they_were_given(clouds, registrar):
    found = registrar.register(clouds["a"], clouds["b"])
    assert found.matches.dtype == np.int64
    assert found.matches.shape == (found.inliers, 2)
    for side, name in enumerate("ab"):
        given = clouds[name][found.matches[:, side]]
        np.testing.assert_allclose(given, found.matched_points[:, side], rtol=0, atol=1e-6)


def test_a_viewpoint_that_a_file_states_is_used_by_auto_alone(tmp_path, room, registrar):
    place = np.array([-0.5, 0.0, 0.25])
    header = "FIELDS x y z\nSIZE 8 8 8\nTYPE F F F\nVIEWPOINT {} 1 0 0 0\nPOINTS {}\nDATA ascii\n"
    path = tmp_path / "a.pcd"
    with path.open("w") as file:
        file.write(header.format("-500 0 250", len(room.source[::2])))
        np.savetxt(file, 1000 * room.source[::2])
    found = registrar.register(registrar.prepare(path, units="mm"), room.target)
    for stated in (registrar.prepare(path, units="mm"), registrar.prepare(room.source, viewpoint=place)):
        np.testing.assert_allclose(stated.enlarged(2).stated, 2 * found.viewpoints[0])
    np.testing.assert_allclose(found.viewpoints[0], place)
    assert found.viewpoints[1] is None
    np.testing.assert_allclose(found.transform(path), found.transform(room.source[::2], units="m"), atol=1e-6)
    at_origin = registrar.prepare(path, units="mm", viewpoint="sensor")
    assert not registrar.register(at_origin, room.target).viewpoints[0].any()
    assert at_origin.notes == ()
    low, size = room.source.min(0), np.linalg.norm(np.ptp(room.source, axis=0))
    near, far = (registrar.prepare(room.source, viewpoint=low - [n * size, 0, 0]).notes for n in (19, 21))
    assert (near, [note[:23] for note in far]) == ((), [f"the sensor is {21 * size:,.0f} m away"[:23]])


@pytest.mark.parametrize(
    ("settings", "sizes", "voxels"),
    [
        ({}, (0.03, 0.02), [0.05, 0.1]),  # that of the training, and in proportion
        ({"descriptor": "fpfh"}, (0.02, 0.03), [0.03, 0.06]),
        ({"voxel": 0.07}, (0.02, 0.03), [0.07]),
        ({}, (0.1, 0.12), [0.3, 0.6]),  # of a street in part of which the other was taken
    ],
)
def test_scales_of_a_pair(settings, sizes, voxels):
    """Scales are the larger voxel size of both clouds and its double; both are too sparse for finer."""
    far_apart = SimpleNamespace(fills=lambda voxel: False)
    sides = zip(sizes, (5.0, 40.0), strict=True)
    clouds = (SimpleNamespace(voxel=voxel, extent=extent, sample=far_apart) for voxel, extent in sides)
    assert [each.voxel for each in Registrar(**settings).scales(*clouds)] == voxels


def test_other_scales_are_twice_and_half_where_the_points_allow():
    directions = np.random.default_rng(0).normal(size=(160_000, 3))
    sphere = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    beams = sphere * [1, 1, 0] + [0, 0, 1] * np.round(sphere * 8) / 8  # 17 of them
    dense, sparse, in_lines = (Sample.of(points, "a") for points in (sphere, sphere[::100], beams))
    first = dense.voxel()
    assert further_voxels(first, dense, dense) == [2 * first, first / 2]
    assert further_voxels(sparse.voxel(), dense, sparse) == [2 * sparse.voxel()]
    assert further_voxels(in_lines.voxel(), dense, in_lines) == [2 * in_lines.voxel()]


@pytest.mark.parametrize(
    ("size", "voxel"),
    [((0.05, np.inf), 0.05), ((0.1, np.inf), 0.3), ((0.3, 40), 0.3), ((0.05, 40), 0.05), ((0.2, 6), 0.05)],
)
def test_rooms_and_streets_have_a_usual_voxel_size(size, voxel):
    assert usual_voxel(*size) == voxel


def test_weights_are_used_at_their_own_scale_where_that_suits_the_clouds():
    assert near_training(0.05, [0.03, 0.06, 0.015]) == pytest.approx([0.05, 0.1, 0.025])
    assert near_training(0.3, [0.12, 0.24]) == pytest.approx([0.3, 0.6])
    assert near_training(0.3, [0.4, 0.8, 0.2], coarser=2.0) == pytest.approx([0.3, 0.6, 0.15])


def test_other_clouds_share_voxel_sizes():
    """Sizes of a sparse room, an object, and streets by few beams are powers of 1.5 apart."""
    assert near_training(0.05, [0.12, 0.24]) == pytest.approx([0.1125, 0.225])
    assert near_training(0.05, [0.01, 0.02]) == pytest.approx([0.05 / 1.5**4, 0.1 / 1.5**4])
    assert near_training(0.3, [0.33, 0.66]) == pytest.approx([0.3, 0.6])
    assert near_training(0.3, [0.6, 1.2, 0.3]) == pytest.approx([0.675, 1.35, 0.3375])
