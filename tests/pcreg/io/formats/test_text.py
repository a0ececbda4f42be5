"""Text as scanners, spreadsheets and other countries write it."""

import codecs
import tracemalloc
from itertools import product

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from tests.pcreg.io.cloud_files import POINTS, refusal


def lines(between: str, decimal: str = ".", head: str = "") -> str:
    rows = (between.join(f"{x:g}".replace(".", decimal) for x in (*row, 7)) for row in POINTS)
    return head + "\n".join(rows) + "\n"


@pytest.mark.parametrize("suffix", [".xyz", ".pts"])
@pytest.mark.parametrize("head", ["", "X,Y,Z,I\n"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks(tmp_path, suffix, head, encoding):
    path, mark = tmp_path / f"a{suffix}", codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    path.write_bytes(mark + lines(",", head=head).encode(encoding))
    np.testing.assert_array_equal(read_cloud(path).points, POINTS)


def test_decimal_commas_that_begin_in_a_later_row(tmp_path):
    for between in (" ", ";"):
        (tmp_path / "a.xyz").write_text(f"1{between}2{between}3\n" + lines(between, ","))
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.xyz").points[1:], POINTS)


COMMAS = ["1,2,3\n4,5,6\n", "1, 2, 3\n4, 5, 6\n", "1 ,2 ,3\n4 ,5 ,6\n", "1,2, 3\n4,5, 6\n"]
COMMENTS = ["1 2 3\n// half\n4 5 6\n", "% Z,Y,X\n\n3,2,1\n%\n6,5,4\n", "1;2;3\n # half\n4;5;6\n"]
COUNTS = ["1\n1 2 3\n1\n4 5 6\n", "#\n1\r\n1\t2\t3\r\n1\r\n4\t5\t6", "1\n1,0 2,0 3\n\n1\n4,0 5 6\n"]
FORTRAN = ["1D0 2.0D+00 0.3d+1\n4 5 6\n", "x y z\n1 2 3\n4D+00 5D+00 6D+00\n"]


@pytest.mark.parametrize("text", [*COMMAS, *COMMENTS, *COUNTS, *FORTRAN])
def test_rows_of_whole_numbers(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.csv").points, [[1, 2, 3], [4, 5, 6]])


def test_commas_of_both_kinds_and_too_few_rows_are_refused(tmp_path):
    (tmp_path / "a.pts").write_text("1\n1 2 3\n2\n4 5 6\n")
    assert "promises 3 points and 2 can be read" in refusal(tmp_path / "a.pts")
    (tmp_path / "a.csv").write_text("x,y,z\n1,50,-2,25,3,75\n1,05,2,25,3,75\n1,50,2,25,3,75\n")
    assert "write semicolons between" in refusal(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("".join(f"{n},5,6,{n % 3}\n" for n in range(1, 40)))
    assert "first column numbers the rows" in refusal(tmp_path / "a.csv")


HEADS = ["", "x y z i\n", "//X Y Z I\n", "# made by hand, x;y;z\n\n", "X,Y,Z,Intensity\n", '"x";"y";"z"\n']
PUNCTUATION = [*product([" ", "\t", ";", " ; "], ".,"), (",", "."), (", ", ".")]


@pytest.mark.parametrize(("between", "decimal"), PUNCTUATION)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("suffix", [".xyz", ".pts"])
def test_text_with_separators_headings_and_decimal_commas(tmp_path, suffix, head, between, decimal):
    (tmp_path / f"a{suffix}").write_text(lines(between, decimal, head))
    np.testing.assert_array_equal(read_cloud(tmp_path / f"a{suffix}").points, POINTS)


def test_text_whose_heading_names_the_columns_in_another_order_or_not_at_all(tmp_path):
    (tmp_path / "a.xyz").write_text("id,z,y,x\n" + "".join(f"9 {z} {y} {x}\n" for x, y, z in POINTS))
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.xyz").points, POINTS)
    units = "# time [s] Z [m] Y [m] X [m]"
    for heading in ("# time Z Y X", "#time,Z,Y,X,", "//time Z Y X", "% time Z Y X", units):
        rows = "".join(f"9 {z} {y} {x}\n" for x, y, z in POINTS)
        (tmp_path / "a.xyz").write_text(f"# x y z of a room\n{heading}\n{rows}")
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.xyz").points, POINTS)
    (tmp_path / "a.xyz").write_text("east north up\n1 2 3\n")
    assert "names no column x" in refusal(tmp_path / "a.xyz")


@pytest.mark.parametrize(
    ("head", "between"), [("Point ID,X [m],Y [m],Z (m)", ","), ("Point ID;x;y;z", ";"), ("\tx\ty\tz", "\t")]
)
def test_names_of_columns_with_blanks_and_units(tmp_path, head, between):
    rows = "".join(between.join(map(str, (9, *row))) + "\n" for row in POINTS)
    (tmp_path / "a.csv").write_text(f"{head}\n{rows}")
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.csv").points, POINTS)


@pytest.mark.parametrize("head", ["", '"x","y","z","i"\n'])
def test_numbers_in_quotes(tmp_path, head):
    rows = "".join(",".join(f'"{x}"' for x in (*row, 7)) + "\n" for row in POINTS)
    (tmp_path / "a.csv").write_text(head + rows)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.csv").points, POINTS)


@pytest.mark.parametrize("head", ["", "x,y,z,i\n", "# old\n", f"{len(POINTS)}\n"])
def test_lines_that_end_in_carriage_returns_alone(tmp_path, head):
    (tmp_path / "a.csv").write_bytes(lines(",", head=head).replace("\n", "\r").encode())
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.csv").points, POINTS)


def test_text_takes_little_memory(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text("x,y,z\n" + "0,0,0\n" * 200_000)
    tracemalloc.start()
    read_cloud(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * path.stat().st_size
    path.write_text("0 " * 500_000)  # a single row
    assert "line of more than" in refusal(path)


@pytest.mark.parametrize("cell", ["", " ", "NA"])
@pytest.mark.parametrize(("between", "decimal"), [*product(";\t", ".,"), (",", ".")])
def test_empty_cells_are_no_points(tmp_path, between, decimal, cell):
    empty = f"{cell}{between}{cell}{between}{cell}{between}7\n"
    (tmp_path / "a.csv").write_text(lines(between, decimal, f"x{between}y{between}z{between}i\n") + empty)
    cloud = read_cloud(tmp_path / "a.csv")
    assert cloud.dropped == 1
    np.testing.assert_array_equal(cloud.points, POINTS)
