"""Methods of a result: move points, and save."""

import builtins
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.io.cloud import Cloud, cloud_of, write_ply
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.result import Registration
from pcreg.runtime.errors import InputError
from tests.pcreg.evidences import evidence

T = se3(rotation_about((0, 0, 1), 90), np.array([1.0, 2.0, 3.0]))


def result() -> Registration:
    matches, sensors = np.zeros((2, 2), dtype=np.int64), (np.zeros(3), None)
    return Registration(
        T, True, 0.9, "well", evidence(), 0.05, matches, np.zeros((2, 2, 3)), sensors, notes=("a",)
    )


@pytest.mark.parametrize(
    "kind", ["list", "tensor", "columns", "NaN", "file", "file with NaN", "prepared NaN"]
)
def test_it_moves_what_is_registered(kind, tmp_path):
    points = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    write_ply(tmp_path / "a.ply", points)
    given = {
        "list": points.tolist(),
        "tensor": torch.tensor(points, dtype=torch.float32),
        "columns": np.insert(points, 3, 9, axis=1),
        "NaN": np.insert(points, 1, np.nan, axis=0),
        "file": tmp_path / "a.ply",
        "file with NaN": tmp_path / "a.npy",
        "prepared NaN": PreparedCloud(cloud_of(np.insert(points, 1, np.inf, axis=0))),
    }[kind]
    np.save(tmp_path / "a.npy", np.insert(points, 1, np.nan, axis=0))
    moved = result().transform(given)
    assert len(moved) == (3 if "NaN" in kind else 2)
    np.testing.assert_allclose(moved[[0, -1]], [[1, 3, 3], [0, 2, 3]])
    in_metres = kind == "prepared NaN"
    for moved in (result().transform(given, units="mm"), replace(result(), units="mm").transform(given)):
        np.testing.assert_allclose(moved[0], [1, 3, 3] if in_metres else [1, 2.001, 3])
    with pytest.raises(InputError, match=r"points: .*rows of at least x y z"):
        result().transform(np.zeros(3))


def test_it_is_shown_in_a_line_and_in_a_notebook_with_its_picture(monkeypatch):
    assert repr(result()) == "<Registration: registered, confidence 0.90: well>"
    assert result()._repr_html_() == "<p>registered, confidence 0.90: well</p>"
    cloud = PreparedCloud(Cloud(np.random.default_rng(0).uniform(-1, 1, (500, 3))))
    assert result().of_clouds(cloud, cloud).clouds is None  # it would keep them in memory
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    page = result().of_clouds(cloud, cloud)._repr_html_()
    assert '<img width="900" src="data:image/png;base64,iVBOR' in page


def test_as_plain_values_it_is_json_and_comes_back():
    plain = json.loads(json.dumps(result().to_dict()))
    np.testing.assert_array_equal(plain["T_target_source"], T)
    assert plain["registered"] is True
    assert plain["alternative"] is None
    assert plain["covariance"] is None
    assert replace(result(), covariance=np.eye(6)).to_dict()["covariance"][5] == [0, 0, 0, 0, 0, 1]
    assert plain["viewpoints"] == {"source": [0.0, 0.0, 0.0], "target": None}
    seen = replace(result(), viewpoints=(np.zeros((9, 3)), None)).to_dict()["viewpoints"]
    assert seen["source"] == "per point"
    assert plain["notes"] == ["a"]
    assert plain["evidence"]["inliers"] == 300
    assert not {"inliers", "overlap", "rmse"} & set(plain)  # evidence has them


def test_it_is_saved_whole_and_a_missing_folder_is_named(tmp_path):
    result().save(tmp_path / "a.json")
    result().save(str(tmp_path / "a.json"))  # again
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(json.dumps(result().to_dict()))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(InputError, match=r"nowhere.a\.json: no such folder"):
        result().save(tmp_path / "nowhere" / "a.json")
    assert not (tmp_path / "nowhere").exists()
