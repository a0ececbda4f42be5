"""Object files of Geomview (.off) as text: OFF, the numbers of vertices, faces and edges, the vertices."""

import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.text import MIN_ROW_BYTES, next_line, open_text
from pcreg.io.size_checks import check_count, check_size
from pcreg.runtime.errors import InputError

KEYWORD = re.compile(r"(?:ST)?C?N?OFF\b\s*(.*)|(?:ST)?C?N?OFF(\d.*)")  # ModelNet has OFF490 518 0 in one word


def read_off(path: Path) -> np.ndarray:
    """The vertices (N, 3)."""
    with open_text(path) as file:
        keyword = KEYWORD.fullmatch(_take_line(file))
        if keyword is None:
            raise ValueError("it does not begin with OFF")
        counts = keyword[1] or keyword[2] or ""
        if counts.upper().startswith("BINARY"):
            raise InputError(f"{path}: is a binary .off, which is not read; write it as text")
        vertices = int((counts or _take_line(file)).split()[0])
        check_size(path, MIN_ROW_BYTES * vertices, path.stat().st_size - file.tell() + 1)
        if vertices == 0:
            return np.empty((0, 3))
        rows = np.loadtxt(file, ndmin=2, max_rows=vertices, usecols=(0, 1, 2))
    return check_count(path, rows, vertices)


def _take_line(file: BinaryIO) -> str:
    """The next line that is neither blank nor a comment; the file stands behind it afterwards."""
    line = next_line(file)
    if not line:
        raise ValueError("it ends within its header")
    file.readline()
    return line
