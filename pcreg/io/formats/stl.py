"""Stereolithography files (.stl), binary or text: triangles, each with its three corners.

A corner is written once for each triangle that it belongs to; it is one point here.
"""

from pathlib import Path

import numpy as np

from pcreg.io.formats.text import read_vertices
from pcreg.io.size_checks import check_size

HEADER_BYTES = 84  # a remark of 80, and the number of triangles
TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(path: Path) -> np.ndarray:
    """The corners of the triangles (N, 3), each once, in the order in which they come."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    triangles = int.from_bytes(head[80:], "little") if len(head) == HEADER_BYTES else 0
    exact = size == HEADER_BYTES + triangles * TRIANGLE.itemsize
    if head.lstrip().startswith(b"solid") and not exact:  # some binary files begin with solid too
        return _distinct(read_vertices(path, (b"vertex",)))
    check_size(path, triangles * TRIANGLE.itemsize, size - HEADER_BYTES)
    if triangles == 0:
        return np.empty((0, 3))
    return _distinct(np.memmap(path, TRIANGLE, "r", HEADER_BYTES, triangles)["corners"].reshape(-1, 3))


def _distinct(corners: np.ndarray) -> np.ndarray:
    order = np.lexsort(corners.T)
    ordered = corners[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(1)])
    return corners[np.sort(order[new])]
