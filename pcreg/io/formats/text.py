"""Text with a point per line: .xyz .txt .csv .asc .pts.

Blanks, tabs, commas or semicolons separate the numbers, which may be in double quotes. The decimal mark is a
point, or a comma where commas do not separate numbers; exponents of Fortran, 1D+00, are read. Empty cells and
NA are NaN. Comments begin with #, // or %. The first line, or a comment before the rows, may name columns, of
which x, y and z are read. A first line with one whole number is the number of points; a .pts of several scans
has such a line before each scan. The encoding is ASCII, UTF-8, or UTF-16 with a byte-order mark.
"""

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count
from pcreg.runtime.errors import InputError

COMMENTS = ("#", "//", "%")
MAX_LINE_BYTES = 1 << 16  # of lines up to the first row
MIN_NUMBERED = 30  # rows; with fewer, a first column 1, 2, 3, ... is taken for coordinates
DECIMALS = re.compile(r"0\d+")  # the digits after a decimal comma: a whole number does not begin with 0
WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")  # a number without a point


def read_text(path: Path) -> np.ndarray:
    """Points (N, 3) of a text file, which may begin with the number of points."""
    with open_text(path) as file:
        if not (first := next_line(file).strip()).isdecimal():
            return _rows(file, path)
        start, points = file.tell() + len(file.readline()), int(first)
        rows = _rows(file, path, counted=True)
        if len(rows) > points:  # several scans, each after its number of points
            file.seek(start)
            points += sum(int(line) for line in file if line.strip().isdigit())
    return check_count(path, rows, points)


def open_text(path: Path) -> BinaryIO:
    """Open a text file as bytes, after its byte-order mark.

    UTF-16 is converted to Latin-1, and carriage returns without line feeds to line feeds; such files are held
    in memory.
    """
    file = path.open("rb")
    mark = file.read(3)
    if mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        file.close()
        return io.BytesIO(path.read_bytes().decode("utf-16").encode("latin-1", "replace"))
    file.seek(0)
    if b"\r" in (start := file.read(MAX_LINE_BYTES)) and b"\n" not in start:
        file.close()
        file = io.BytesIO(path.read_bytes().replace(b"\r", b"\n"))
    file.seek(3 if mark == codecs.BOM_UTF8 else 0)
    return file


def next_line(file: BinaryIO) -> str:
    """Next line that is neither blank nor a comment, '' at the end; the file then stands before that line."""
    while True:
        start = file.tell()
        line = file.readline(MAX_LINE_BYTES + 1)
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"it begins with a line of more than {MAX_LINE_BYTES} bytes")
        text = line.decode("latin-1").strip(" \r\n")
        if not line or not (line.isspace() or text.lstrip().startswith(COMMENTS)):
            file.seek(start)
            return text.partition("#")[0].rstrip()


def _rows(file: BinaryIO, path: Path, *, counted: bool = False) -> np.ndarray:
    """Points (N, 3) of the rest of the file, which may begin with the names of the columns.

    If the file is `counted`, a line with one whole number is a number of points, not a row.
    """
    columns, start = _columns(file, path), file.tell()
    sample = [line.partition("#")[0] for line in file.read(MAX_LINE_BYTES).decode("latin-1").splitlines()]
    sample = [line for line in sample[:-1] or sample if line.strip() and _is_row(line, counted)]
    separator, decimal_comma = _punctuation(sample, columns)
    cells = (cell for line in sample for cell in _cells(line.split(","), columns))
    if separator == "," and any(map(DECIMALS.fullmatch, cells)):
        raise InputError(
            f"{path}: has commas between its numbers and before their decimals; write semicolons between them"
        )
    file.seek(start)
    reading = {"ndmin": 2, "dtype": np.float64, "usecols": columns, "delimiter": separator, "quotechar": '"'}

    def lines() -> Iterator[str]:
        file.seek(start)
        for line in file:
            text = line.decode("latin-1")
            yield text.replace(",", ".") if decimal_comma else text

    try:
        rows = np.loadtxt(lines() if decimal_comma else file, **reading)
    except ValueError:  # such as for a comment, or an empty cell, which pandas writes for NaN
        rows = np.loadtxt(filter(partial(_is_row, counted=counted), lines()), **reading, converters=_number)
    numbered = len(rows) >= MIN_NUMBERED and len(sample[0].split(separator)) > 3
    if numbered and (np.diff(rows[:, 0]) == 1).all():
        raise InputError(f"{path}: its first column numbers the rows; name the columns first: n,x,y,z")
    return rows


def _columns(file: BinaryIO, path: Path) -> list[int]:
    """Read up to the first row; returns the columns of x, y and z, by name if the columns have names."""
    first = next_line(file)
    if first.lower().startswith("ncols"):
        raise InputError(f"{path}: is a grid of heights; write its cells as lines x y z")
    cells = re.split(r"[\s,;]+", first.replace('"', "").rstrip(" ,;\t"))
    if not first or any(map(is_number, cells)):
        start = file.tell()
        file.seek(0)
        comments = file.read(start).decode("utf-8-sig", "replace")
        return _named_in(comments, len(cells)) or [0, 1, 2]
    names = _names(first)
    if missing := [axis for axis in "xyz" if axis not in names]:
        raise InputError(
            f"{path}: its first line has no numbers and names no column {missing[0]}; call the columns "
            "with the coordinates x, y and z"
        )
    file.readline()
    next_line(file)
    return [names.index(axis) for axis in "xyz"]


def _named_in(comments: str, count: int) -> list[int] | None:
    """Columns of x, y and z by a comment that names `count` columns; None if there is none."""
    for line in comments.splitlines():
        names = _names(line.strip(" \t#/%,;"))
        if len(names) == count and set("xyz") <= set(names):
            return [names.index(axis) for axis in "xyz"]
    return None


def _names(line: str) -> list[str]:
    """Names of columns, in lower case, without units and quotes."""
    line = re.sub(r"\[.*?\]|\(.*?\)", "", line)
    separator = next((each for each in ";,\t" if each in line), None)  # a name may hold blanks
    return [word.strip(" \"'").lower() for word in line.split(separator)]


def _is_row(line: str, counted: bool) -> bool:
    """False for a comment and, in a `counted` file, for a number of points."""
    text = line.strip()
    return not (text.startswith(COMMENTS) or (counted and text.isdecimal()))


def _punctuation(lines: Sequence[str], columns: Sequence[int]) -> tuple[str | None, bool]:
    """Separator of the numbers in rows, None for blanks, and True for decimal commas."""
    if end := ";" if ";" in "".join(lines) else "\t" if _is_table(lines, columns) else None:
        return end, any("," in cell for line in lines for cell in _cells(line.split(end), columns))
    if not any("," in line for line in lines):
        return None, False
    for line in lines:
        cells = _cells(line.split(), columns)
        if len(cells) < 3 or not all(map(WITH_COMMA.fullmatch, cells)):
            return ",", False
    return None, True


def _is_table(lines: Sequence[str], columns: Sequence[int]) -> bool:
    """True if tabs separate the cells: each line has as many, and cells are numbers or empty."""
    rows = [_cells(line.split("\t"), columns) for line in lines]
    numbers = all(not cell or is_number(cell.replace(",", ".")) for row in rows for cell in row)
    same = len({line.count("\t") for line in lines}) == 1
    return same and numbers and any(len(row) == len(columns) and all(row) for row in rows)


def _cells(words: Sequence[str], columns: Sequence[int]) -> list[str]:
    return [words[column].strip() for column in columns if column < len(words)]


def is_number(word: str) -> bool:
    try:
        _number(word)
    except ValueError:
        return False
    return bool(word.strip())


def _number(cell: str) -> float:
    """Number in a cell; NaN if the cell is empty or NA, ValueError for other text."""
    return float("nan" if cell.strip() in {"", "NA"} else cell.upper().replace("D", "E"))
