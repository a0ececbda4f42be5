"""What a result can do: move points, and be written down."""

import json

import numpy as np

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.registration.result import Registration
from tests.pcreg.evidences import evidence

T = se3(rotation_about((0, 0, 1), 90), np.array([1.0, 2.0, 3.0]))


def result() -> Registration:
    agreeing = np.zeros((2, 2, 3))
    sensors = np.zeros(3), None
    return Registration(
        T, True, 0.9, 2, 0.5, 0.01, "well", {}, 0.05, evidence(), None, agreeing, sensors, ("a",)
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
    assert plain["viewpoints"] == {"source": [0.0, 0.0, 0.0], "target": None}
    assert plain["notes"] == ["a"]
    assert plain["evidence"]["inliers"] == 300


def test_a_result_equals_itself_alone():
    one, other = result(), result()
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2
