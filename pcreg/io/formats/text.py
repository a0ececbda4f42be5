"""Text with a point per line: .xyz .txt .csv .asc .pts; a first line may say how many points follow.

Numbers stand between blanks, tabs, commas or semicolons, with a point or, but between commas, a
comma before their decimals. Lines that begin with # or // may come first, and so may a line with the names of
the columns, of which x, y and z are read; such a line may be a comment, too. An empty cell and NA are NaN.
Numbers may stand in double quotes. The text is in ASCII, UTF-8, or UTF-16 with its byte-order mark.
"""

import codecs
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count, check_size
from pcreg.runtime.errors import InputError

MIN_ROW_BYTES = 6  # "0 0 0\n"
MAX_LINE_BYTES = 1 << 16  # of lines up to the first row
DECIMALS = re.compile(r"0\d+")  # no whole number
WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")  # a number without a point


def read_text(path: Path) -> np.ndarray:
    """Points (N, 3) of a text file, behind a line with their number if there is one."""
    with open_text(path) as file:
        if not (first := next_line(file).strip()).isdecimal():
            return _rows(file, path)
        points = int(first)
        file.readline()
        # The last line may not end
        check_size(path, MIN_ROW_BYTES * points, path.stat().st_size - file.tell() + 1)
        rows = _rows(file, path)
    return check_count(path, rows, points)


def open_text(path: Path) -> BinaryIO:
    """Open a file behind its byte-order mark.

    UTF-16, which becomes a byte per character, and text whose lines end in carriage returns alone are read
    whole.
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
    """Next line that is neither blank nor a comment, '' at the end; the file stays before it."""
    while True:
        start = file.tell()
        line = file.readline(MAX_LINE_BYTES + 1)
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"it begins with a line of more than {MAX_LINE_BYTES} bytes")
        if not line or not (line.isspace() or line.lstrip().startswith((b"#", b"//"))):
            file.seek(start)
            return line.decode("latin-1").partition("#")[0].strip(" \r\n")


def _rows(file: BinaryIO, path: Path) -> np.ndarray:
    """Points (N, 3) of the rest of the file, with or without the names of the columns first."""
    first, columns = next_line(file), None
    if first.lower().startswith("ncols"):
        raise InputError(f"{path}: is a grid of heights; write its cells as lines x y z")
    cells = re.split(r"[\s,;]+", first.replace('"', "").rstrip(" ,;\t"))
    if first and not any(map(is_number, cells)):
        names = _names(first.lstrip("% "))
        if missing := [axis for axis in "xyz" if axis not in names]:
            raise InputError(
                f"{path}: its first line has no numbers and names no column {missing[0]}; call the columns "
                "with the coordinates x, y and z"
            )
        columns = [names.index(axis) for axis in "xyz"]
        file.readline()
        next_line(file)
    start = file.tell()
    if columns is None:
        file.seek(0)
        columns = _named_in(file.read(start).decode("utf-8-sig", "replace"), len(cells)) or [0, 1, 2]
    sample = file.read(MAX_LINE_BYTES).decode("latin-1")
    separator, decimal_comma = _punctuation(sample, columns)
    lines = sample.splitlines()[:-1] if separator == "," else []
    if any(DECIMALS.fullmatch(cell) for line in lines for cell in _cells(line.split(","), columns)):
        raise InputError(
            f"{path}: has commas between its numbers and before their decimals; write semicolons between them"
        )
    reading = {"ndmin": 2, "dtype": np.float64, "usecols": columns, "delimiter": separator, "quotechar": '"'}

    def rows(**more: Any) -> np.ndarray:
        file.seek(start)
        lines = (line.decode("latin-1").replace(",", ".") for line in file) if decimal_comma else file
        return np.loadtxt(lines, **reading, **more)

    try:
        return rows()
    except ValueError:  # such as for an empty cell, which pandas writes for NaN, or for the NA of R
        return rows(converters=lambda cell: float("nan" if cell.strip() in {"", "NA"} else cell))


def _named_in(comments: str, count: int) -> list[int] | None:
    """The columns of x, y and z by a comment that names so many columns; None if there is none."""
    for line in comments.splitlines():
        names = _names(line.strip(" \t#/,;"))
        if len(names) == count and set("xyz") <= set(names):
            return [names.index(axis) for axis in "xyz"]
    return None


def _names(line: str) -> list[str]:
    """Names of columns, in small letters, without units and quotes."""
    line = re.sub(r"\[.*?\]|\(.*?\)", "", line)
    separator = next((each for each in ";,\t" if each in line), None)  # a name may hold blanks
    return [word.strip(" \"'").lower() for word in line.split(separator)]


def _punctuation(sample: str, columns: Sequence[int]) -> tuple[str | None, bool]:
    """Separator of the numbers in a `sample` of rows, None for blanks, and True for decimal commas."""
    lines = [line.partition("#")[0] for line in sample.splitlines()]
    lines = [line for line in (lines[:-1] or lines) if line.strip()]
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
    """True if lines have as many tabs each, with a number or nothing between them: cells may be empty."""
    rows = [_cells(line.split("\t"), columns) for line in lines]
    numbers = all(not cell or is_number(cell.replace(",", ".")) for row in rows for cell in row)
    same = len({line.count("\t") for line in lines}) == 1
    return same and numbers and any(len(row) == len(columns) and all(row) for row in rows)


def _cells(words: Sequence[str], columns: Sequence[int]) -> list[str]:
    return [words[column].strip() for column in columns if column < len(words)]


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
