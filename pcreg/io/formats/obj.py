"""Wavefront .obj: of its lines those with the vertices, `v x y z`."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.text import open_text
from pcreg.runtime.errors import InputError


def read_obj(path: Path) -> np.ndarray:
    """The vertices (N, 3)."""
    with open_text(path) as file:
        vertices = _vertices(file)
        first = next(vertices, None)
        if first is None:
            raise InputError(f"{path}: has no line `v x y z`, so it holds no vertices; check the file")
        return np.loadtxt(chain([first], vertices), ndmin=2, usecols=(1, 2, 3))


def _vertices(file: BinaryIO) -> Iterator[str]:
    return (line.decode("latin-1") for line in file if line.startswith((b"v ", b"v\t")))
