"""Arrays of NumPy, alone and by name."""

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from tests.pcreg.io.cloud_files import POINTS, refusal


@pytest.mark.parametrize("key", ["points", "pcd", "xyz", "anything"])
def test_names_of_arrays_in_an_npz(tmp_path, key):
    extra = {} if key == "anything" else {"color": np.zeros((3, 3))}
    np.savez(tmp_path / "a.npz", **{key: POINTS}, **extra)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.npz").points, POINTS)
    np.savez(tmp_path / "a.npz", first=POINTS, second=POINTS)
    assert "'first', 'second'" in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(5,), (5, 2), (2, 5, 3), ()])
def test_arrays_that_are_no_rows_of_points(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    assert str(shape) in refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("write_array", [np.save, lambda path, rows: np.savez(path, points=rows)])
@pytest.mark.parametrize("shape", [(3, 1000), (4, 1000)])
def test_a_transposed_array_is_called_so(tmp_path, write_array, shape):
    path = tmp_path / ("a.npy" if write_array is np.save else "a.npz")
    write_array(path, np.zeros(shape))
    assert "transposed" in refusal(path)
    write_array(path, np.zeros(shape).T)
    assert len(read_cloud(path).points) == 1000


def test_an_npz_says_from_where_each_point_was_seen(tmp_path):
    points, viewpoints = np.random.default_rng(0).normal(size=(2, 5, 3))
    points[2] = np.nan
    np.savez(tmp_path / "a.npz", points=points, viewpoints=viewpoints)
    found = read_cloud(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.viewpoint, viewpoints[[0, 1, 3, 4]])
    np.savez(tmp_path / "b.npz", points=points)
    assert read_cloud(tmp_path / "b.npz").viewpoint is None


@pytest.mark.parametrize(
    ("viewpoints", "words"),
    [
        (np.zeros((4, 3)), "5 rows and 4 viewpoints"),
        (np.zeros((5, 2)), "viewpoints of shape (5, 2)"),
        (np.full((5, 3), np.nan), "viewpoints hold NaN"),
    ],
)
def test_viewpoints_that_are_none(tmp_path, viewpoints, words):
    np.savez(tmp_path / "a.npz", points=np.ones((5, 3)), viewpoints=viewpoints)
    assert words in refusal(tmp_path / "a.npz")
