"""Three encodings of .pcd, and the viewpoint in its header."""

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from tests.pcreg.io.cloud_files import pcd, refusal, write_by_open3d


def test_a_compressed_pcd_as_another_program_writes_it(tmp_path):
    """Equal coordinates of floors and walls become copies of earlier bytes."""
    points = np.random.default_rng(0).uniform(-4, 4, (3000, 3))
    points[:600, 2], points[600:900, 0] = -1.5, 4.0
    write_by_open3d(tmp_path / "a.pcd", points, compressed=True)
    assert b"DATA binary_compressed" in (tmp_path / "a.pcd").read_bytes()
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.pcd").points, points.astype(np.float32))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("", None),
        ("VIEWPOINT 0 0 0 1 0 0 0\n", None),  # what every tool writes that does not know
        ("VIEWPOINT 1.5 -2 3 1 0 0 0\n", [1.5, -2, 3]),
        ("VIEWPOINT 0 0 0 0 1 0 0\n", [0, 0, 0]),  # turned, so somebody knew
    ],
)
def test_a_pcd_says_where_its_sensor_stood(tmp_path, line, place):
    """These headers also give the number of points only by width and height."""
    header = f"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n{line}WIDTH 1\nHEIGHT 2\nDATA ascii\n1 2 3\n4 5 6\n"
    (tmp_path / "a.pcd").write_text(header)
    found = read_cloud(tmp_path / "a.pcd")
    np.testing.assert_array_equal(found.points, [[1, 2, 3], [4, 5, 6]])
    assert found.viewpoint is None if place is None else found.viewpoint.tolist() == place


@pytest.mark.parametrize("words", ["1 2 3", "1 2 3 1 0 0 nan", "a b c d e f g"])
def test_a_damaged_viewpoint_is_refused(tmp_path, words):
    header = f"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nVIEWPOINT {words}\nPOINTS 1\nDATA ascii\n1 2 3\n"
    (tmp_path / "a.pcd").write_text(header)
    refusal(tmp_path / "a.pcd")


@pytest.mark.parametrize("data", ["ascii", "binary"])
def test_a_pcd_says_from_where_each_point_was_seen(tmp_path, data):
    """Fields are those of PCL's PointWithViewpoint; a row that is no point loses its viewpoint, too."""
    rows = np.arange(24, dtype=np.float64).reshape(4, 6)
    rows[1, 0] = np.nan
    (tmp_path / "a.pcd").write_bytes(pcd(rows, data, "x y z vp_x vp_y vp_z"))
    found = read_cloud(tmp_path / "a.pcd")
    np.testing.assert_array_equal(found.points, rows[[0, 2, 3], :3])
    np.testing.assert_array_equal(found.viewpoint, rows[[0, 2, 3], 3:])
    rows[:, 3:] = 0  # as PCL writes them where it knows none
    (tmp_path / "a.pcd").write_bytes(pcd(rows, data, "x y z vp_x vp_y vp_z"))
    assert read_cloud(tmp_path / "a.pcd").viewpoint is None


@pytest.mark.parametrize("data", ["ascii", "binary"])
def test_fields_of_several_numbers_are_passed_over(tmp_path, data):
    rows = np.arange(10.0).reshape(2, 5)
    content = pcd(rows, data, "a b x y z").replace(b"COUNT 1 1", b"COUNT 2")
    for words in (b"FIELDS a b", b"SIZE 4 4", b"TYPE F F"):
        content = content.replace(words, words[:-2], 1)
    (tmp_path / "a.pcd").write_bytes(content)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.pcd").points, rows[:, 2:])
