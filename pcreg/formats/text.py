"""Text with a point per line: .xyz, and .pts, which may say first how many points follow.

Numbers stand between blanks, commas or semicolons. Lines that begin with # or // may come first, and so
may a line with the names of the columns, of which x, y and z are read.
"""

import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.formats.promise import complete, fits

SHORTEST_ROW = 6  # bytes: "0 0 0\n"
LONGEST_LINE = 1 << 16  # bytes, of those before the first row, and of that


def read_xyz(path: Path) -> np.ndarray:
    """The points (N, 3)."""
    with path.open("rb") as file:
        return _rows(file)


def read_pts(path: Path) -> np.ndarray:
    """The points (N, 3) that follow a line with their number, if there is one."""
    with path.open("rb") as file:
        words = _words(_next_line(file))
        if len(words) != 1:
            return _rows(file)
        points = int(words[0])
        file.readline()
        fits(path, SHORTEST_ROW * points, path.stat().st_size - file.tell() + 1)  # the last line may not end
        if points == 0:
            return np.empty((0, 3))
        rows = _rows(file)
    return complete(path, rows, points)


def _next_line(file: BinaryIO) -> str:
    """The next line that is neither blank nor a remark; the file stands before it afterwards."""
    while True:
        start = file.tell()
        line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise ValueError(f"it begins with a line of more than {LONGEST_LINE} bytes")
        if not line or not (line.isspace() or line.lstrip().startswith((b"#", b"//"))):
            file.seek(start)
            return line.decode("latin-1").partition("#")[0].strip()


def _words(line: str) -> list[str]:
    return re.split(r"[\s,;]+", line)


def _rows(file: BinaryIO) -> np.ndarray:
    """The points (N, 3) from where the file stands, with or without the names of the columns first."""
    first, columns = _next_line(file), [0, 1, 2]
    names = [word.strip("\"'").lower() for word in _words(first)]
    if first and not any(map(_is_number, names)):
        if missing := [axis for axis in "xyz" if axis not in names]:
            raise ValueError(f"its first line has no numbers and names no column {missing[0]}")
        columns = [names.index(axis) for axis in "xyz"]
        file.readline()
        first = _next_line(file)
    separator = next((mark for mark in ";," if mark in first), None)  # else blanks
    return np.loadtxt(file, ndmin=2, dtype=np.float64, usecols=columns, delimiter=separator)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
