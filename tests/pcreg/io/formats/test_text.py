"""Text as spreadsheets and other countries write it."""

import codecs

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from pcreg.runtime.errors import InputError

POINTS = np.array([[0.5, -1.25, 2.0], [3.0, 4.0, -5.5], [1e-3, 0.0, 7.75]])
SUFFIXES = (".xyz", ".txt", ".csv", ".asc", ".pts")


def lines(between: str, decimal: str = ".", head: str = "") -> str:
    rows = (between.join(f"{x:g}".replace(".", decimal) for x in (*row, 7)) for row in POINTS)
    return head + "\n".join(rows) + "\n"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("head", ["", "X,Y,Z,I\n", "// made by hand\n"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks(tmp_path, suffix, head, encoding):
    path, mark = tmp_path / f"a{suffix}", codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    path.write_bytes(mark + lines(",", head=head).encode(encoding))
    np.testing.assert_array_equal(read_cloud(path).points, POINTS)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("between", [" ", "\t", "  ", ";", " ; "])
@pytest.mark.parametrize("head", ["", "x y z i\n", "//x y z\n\n"])
def test_decimal_commas(tmp_path, suffix, between, head):
    path = tmp_path / f"a{suffix}"
    path.write_text(lines(between, ",", head))
    np.testing.assert_array_equal(read_cloud(path).points, POINTS)


def test_decimal_commas_that_begin_in_a_later_row(tmp_path):
    for between in (" ", ";"):
        (tmp_path / "a.xyz").write_text(f"1{between}2{between}3\n" + lines(between, ","))
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.xyz").points[1:], POINTS)


@pytest.mark.parametrize(
    "text", ["1,2,3\n4,5,6\n", "1, 2, 3\n4, 5, 6\n", "1 ,2 ,3\n4 ,5 ,6\n", "1,2, 3\n4,5, 6\n"]
)
def test_commas_between_whole_numbers_stay_separators(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.csv").points, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("text", ["ncols 4\nnrows 2\n1 2 3 4\n5 6 7 8\n", "east,north,up\n1,2,3\n"])
def test_sound_text_that_holds_no_points_is_not_called_damaged(tmp_path, text):
    (tmp_path / "a.asc").write_text(text)
    with pytest.raises(InputError) as caught:
        read_cloud(tmp_path / "a.asc")
    assert "damaged" not in str(caught.value)


def test_a_ply_behind_a_byte_order_mark(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex 3\n"
    header += "".join(f"property double {axis}\n" for axis in "xyz") + "end_header\n"
    (tmp_path / "a.ply").write_bytes((header + lines(" ")).encode("utf-8-sig"))
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, POINTS)


def test_laser_scans_as_csv(real_data):
    for name in ("car400.csv", "car401.csv"):
        assert len(read_cloud(real_data / f"indoor/other_scans/laser_car/{name}").points) > 10_000
