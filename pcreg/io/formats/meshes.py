"""Meshes: .obj, .off and .stl, and points on the faces of these and of .ply."""

import re
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count, check_size
from pcreg.io.formats.text import next_line, open_text
from pcreg.runtime.errors import InputError

KEYWORD = re.compile(r"(?:ST)?C?N?OFF\b\s*(.*)|(?:ST)?C?N?OFF(\d.*)")  # ModelNet has OFF490 518 0 in one word
DENSE = 200_000  # vertices of a scanned surface, which need no points between them
MIN_ROW_BYTES = 6  # "0 0 0\n" of an .off
STL_HEADER_BYTES = 84  # a comment of 80 bytes, and the number of triangles
TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def with_faces(path: Path, vertices: np.ndarray) -> np.ndarray:
    """Add points on the faces of a mesh, as the vertices of a CAD model lie along its edges.

    Args:
        path: Mesh file.
        vertices: (N, 3), as read from it.

    Returns:
        The vertices, then random points, always the same: together about DENSE, spread evenly by area.
    """
    if not 0 < len(vertices) < DENSE:
        return vertices
    import trimesh  # takes 0.8 s

    mesh = trimesh.load_mesh(path, process=False, skip_materials=True)
    areas = np.where(np.isfinite(mesh.area_faces), mesh.area_faces, 0)
    if not areas.any():
        return vertices
    vertices_per_face = 0.5  # of a fine mesh
    wanted = np.maximum(areas * (DENSE / areas.sum()) - vertices_per_face, 0)
    points, _ = trimesh.sample.sample_surface(mesh, round(wanted.sum()), wanted, seed=0)
    return np.concatenate([vertices, points])


def read_obj(path: Path) -> np.ndarray:
    """Vertices (N, 3) of a Wavefront .obj, whose lines `v x y z` hold them, and points on its faces."""
    return with_faces(path, _read_vertices(path, (b"v ", b"v\t")))


def read_off(path: Path) -> np.ndarray:
    """Vertices (N, 3) of a Geomview .off as text, after OFF and three counts, and points on its faces."""
    with open_text(path) as file:
        keyword = KEYWORD.fullmatch(_take_line(file))
        if keyword is None:
            raise ValueError("it does not begin with OFF")
        counts = keyword[1] or keyword[2] or ""
        if counts.upper().startswith("BINARY"):
            raise InputError(f"{path}: is a binary .off, which is not read; write it as text")
        vertices = int((counts or _take_line(file)).split()[0])
        check_size(path, MIN_ROW_BYTES * vertices, path.stat().st_size - file.tell() + 1)
        rows = np.loadtxt(file, ndmin=2, max_rows=vertices, usecols=(0, 1, 2))
    return with_faces(path, check_count(path, rows, vertices))


def _take_line(file: BinaryIO) -> str:
    """Read the next line that is neither blank nor a comment."""
    line = next_line(file)
    if not line:
        raise ValueError("it ends within its header")
    file.readline()
    return line


def read_stl(path: Path) -> np.ndarray:
    """Distinct corners (N, 3) of the triangles of an .stl, binary or text, and points on its faces."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(STL_HEADER_BYTES)
    triangles = int.from_bytes(head[80:], "little") if len(head) == STL_HEADER_BYTES else 0
    exact = size == STL_HEADER_BYTES + triangles * TRIANGLE.itemsize
    if head.lstrip().startswith(b"solid") and not exact:  # some binary files begin with solid too
        return with_faces(path, _distinct(_read_vertices(path, (b"vertex",))))
    check_size(path, triangles * TRIANGLE.itemsize, size - STL_HEADER_BYTES)
    if triangles == 0:
        return np.empty((0, 3))
    corners = np.memmap(path, TRIANGLE, "r", STL_HEADER_BYTES, triangles)["corners"]
    return with_faces(path, _distinct(corners.reshape(-1, 3)))


def _distinct(corners: np.ndarray) -> np.ndarray:
    """First occurrence of each corner (N, 3), in their order."""
    return corners[np.sort(np.unique(corners, axis=0, return_index=True)[1])]


def _read_vertices(path: Path, keywords: tuple[bytes, ...]) -> np.ndarray:
    """Points (N, 3) of the lines `KEYWORD x y z` of a mesh, for each of the keywords."""
    with open_text(path) as file:
        vertices = (line.decode("latin-1") for line in file if line.lstrip().startswith(keywords))
        first = next(vertices, None)
        if first is None:
            line = f"{keywords[0].decode().strip()} x y z"
            raise InputError(f"{path}: has no line `{line}`, so it has no vertices; check the file")
        return np.loadtxt(chain([first], vertices), ndmin=2, usecols=(1, 2, 3))
