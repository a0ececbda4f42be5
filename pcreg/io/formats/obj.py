"""Wavefront .obj: of its lines those with the vertices, `v x y z`."""

from pathlib import Path

import numpy as np

from pcreg.io.formats.text import read_vertices


def read_obj(path: Path) -> np.ndarray:
    """The vertices (N, 3)."""
    return read_vertices(path, (b"v ", b"v\t"))
