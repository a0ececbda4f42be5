"""What a result can do: move points, and be written down."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.registration.result import Registration
from pcreg.runtime.errors import InputError
from tests.pcreg.evidences import evidence

T = se3(rotation_about((0, 0, 1), 90), np.array([1.0, 2.0, 3.0]))


def result() -> Registration:
    matches, sensors = np.zeros((2, 2), dtype=np.int64), (np.zeros(3), None)
    return Registration(
        T, True, 0.9, "well", evidence(), 0.05, matches, np.zeros((2, 2, 3)), sensors, notes=("a",)
    )


def test_points_of_the_source_are_moved_into_the_frame_of_the_target():
    np.testing.assert_allclose(
        result().transform(np.array([[1.0, 0, 0], [0, 1.0, 0]])), [[1, 3, 3], [0, 2, 3]]
    )


def test_as_plain_values_it_is_json_and_comes_back():
    plain = json.loads(json.dumps(result().to_dict()))
    np.testing.assert_array_equal(plain["T_target_source"], T)
    assert plain["registered"] is True
    assert plain["alternative"] is None
    assert plain["covariance"] is None
    assert replace(result(), covariance=np.eye(6)).to_dict()["covariance"][5] == [0, 0, 0, 0, 0, 1]
    assert plain["viewpoints"] == {"source": [0.0, 0.0, 0.0], "target": None}
    assert plain["notes"] == ["a"]
    assert plain["evidence"]["inliers"] == 300
    assert not {"inliers", "overlap", "rmse"} & set(plain)  # evidence has them


def test_of_a_viewpoint_per_point_it_writes_places_a_voxel_apart():
    """Of a drive of 10 m, in order, about 200 of 5 cm."""
    drive = np.linspace([10.0, 0.01, 0.01], [0.0, 0.01, 0.01], 100_000)
    places = np.array(replace(result(), viewpoints=(drive, None)).to_dict()["viewpoints"]["source"])
    assert 199 <= len(places) <= 202
    assert np.abs(np.diff(places[:, 0])).max() < 0.06
    assert places[0, 0] == 10


def test_it_is_saved_whole_and_a_missing_folder_is_named(tmp_path):
    result().save(tmp_path / "a.json")
    result().save(str(tmp_path / "a.json"))  # again
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(json.dumps(result().to_dict()))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(InputError, match=r"nowhere.a\.json: no such folder"):
        result().save(tmp_path / "nowhere" / "a.json")
    assert not (tmp_path / "nowhere").exists()
