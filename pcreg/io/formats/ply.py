"""Polygon files (.ply): text, or binary of either byte order.

No library is used for the vertices, as readers of meshes take forty bytes of memory or more per byte of text.
"""

import mmap
import struct
from array import array
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count, check_size
from pcreg.io.formats.meshes import with_faces

MAX_HEADER_BYTES = 1 << 16
CODES = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")  # of NumPy, for types that have two names each
OLD_NAMES = ("char", "uchar", "short", "ushort", "int", "uint", "float", "double")
SCALARS = dict(zip(OLD_NAMES, CODES, strict=True)) | {np.dtype(code).name: code for code in CODES}
LIST = ":"  # stands between the codes of the count and of the items, as in "u1:i4"
ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">"}


@dataclass
class Element:
    name: str
    count: int
    properties: dict[str, str] = field(default_factory=dict)  # name -> NumPy's code; "u1:i4" for a list

    def add(self, name: str, code: str) -> None:
        """Add a property; a second one of the same name gets its number as its name."""
        self.properties[str(len(self.properties)) if name in self.properties else name] = code

    @property
    def has_lists(self) -> bool:
        return any(LIST in code for code in self.properties.values())

    @property
    def min_row_bytes(self) -> int:
        """Bytes of a binary row whose lists are empty."""
        return sum(np.dtype(code.partition(LIST)[0]).itemsize for code in self.properties.values())


def read_ply(path: Path) -> np.ndarray:
    """Vertices (N, 3) of a .ply file, and points on its faces if these follow the vertices, as is usual."""
    with path.open("rb") as file:
        encoding, elements = _header(file)
        vertices = _vertices(file, path, encoding, elements)
    is_mesh = [each.name for each in elements][:2] == ["vertex", "face"] and elements[1].count > 0
    return with_faces(path, vertices) if is_mesh and not elements[0].has_lists else vertices


def _vertices(file: BinaryIO, path: Path, encoding: str, elements: list[Element]) -> np.ndarray:
    """Vertices (N, 3) of a file whose header has been read."""
    names = [element.name for element in elements]
    if "vertex" not in names:
        raise ValueError("it has no element vertex")
    before, vertex = elements[: names.index("vertex")], elements[names.index("vertex")]
    capitals = {axis.upper(): axis for axis in set("xyz").difference(vertex.properties)}
    vertex.properties = {capitals.get(name, name): code for name, code in vertex.properties.items()}
    if missing := [axis for axis in "xyz" if LIST in vertex.properties.get(axis, LIST)]:
        raise ValueError(f"its vertices have no number {missing[0]}")
    left = path.stat().st_size - file.tell()
    if encoding == "ascii":
        return _read_text(file, path, before, vertex, left)
    check_size(path, sum(each.count * each.min_row_bytes for each in (*before, vertex)), left)
    if vertex.count == 0:
        return np.empty((0, 3))
    return _read_binary(file, before, vertex, ORDERS[encoding])


def _header(file: BinaryIO) -> tuple[str, list[Element]]:
    """Read the header up to the data; returns the encoding and the elements."""
    if file.readline(MAX_HEADER_BYTES).strip().removeprefix(BOM_UTF8) != b"ply":
        raise ValueError("it does not begin with ply")
    encoding, elements = "", []
    while (line := file.readline(MAX_HEADER_BYTES)) and file.tell() < MAX_HEADER_BYTES:
        words = line.decode("latin-1").split()
        match words:
            case ["format", name, _] if name == "ascii" or name in ORDERS:
                encoding = name
            case ["element", name, count]:
                elements.append(Element(name, int(count)))
            case ["property", "list", kind, item, name] if elements and {kind, item} <= SCALARS.keys():
                if SCALARS[kind].startswith("f"):
                    raise ValueError(f"the length of its list {name} is not a whole number")
                elements[-1].add(name, SCALARS[kind] + LIST + SCALARS[item])
            case ["property", kind, name] if elements and kind in SCALARS:
                elements[-1].add(name, SCALARS[kind])
            case ["end_header"] if encoding and all(element.count >= 0 for element in elements):
                return encoding, elements
            case [] | ["comment" | "obj_info", *_]:
                pass
            case _:
                break
    raise ValueError("its header is damaged, or has no end_header line")


def _read_binary(file: BinaryIO, before: list[Element], vertex: Element, order: str) -> np.ndarray:
    """Vertices (N, 3), N > 0, of a binary file whose header has been read."""
    at = file.tell()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for element in before:
            if element.has_lists:
                at, _ = _walk(data, at, element.count, element.properties, order, keep=False)
            else:
                at += element.count * element.min_row_bytes
        if vertex.has_lists:
            return _walk(data, at, vertex.count, vertex.properties, order, keep=True)[1]
    row = np.dtype([(name, order + code) for name, code in vertex.properties.items()])
    records = np.memmap(file, row, "r", at, vertex.count)
    return np.stack([records[axis] for axis in "xyz"], axis=1, dtype=np.float64, casting="unsafe")


def _read_text(file: BinaryIO, path: Path, before: list[Element], vertex: Element, left: int) -> np.ndarray:
    """Vertices (N, 3) of a text file whose header has been read, and `left` bytes have not."""
    min_row_bytes = 2 * len(vertex.properties)  # bytes of a row: a digit and a space or line end for each
    check_size(path, sum(each.count for each in before) + vertex.count * min_row_bytes, left + 1)
    for _ in range(sum(element.count for element in before)):
        file.readline()
    columns = [list(vertex.properties).index(axis) for axis in "xyz"]
    lines = islice(file, vertex.count)
    rows = np.loadtxt(
        _without_lists(lines, vertex.properties) if vertex.has_lists else file,
        ndmin=2,
        max_rows=vertex.count,
        usecols=columns,
    )
    return check_count(path, rows, vertex.count)


def _walk(
    data: mmap.mmap, at: int, count: int, properties: Mapping[str, str], order: str, *, keep: bool
) -> tuple[int, np.ndarray]:
    """Find the end of `count` binary rows with lists from byte `at`; with `keep`, points (count, 3), too."""
    steps = []  # per property: the reader of its scalar or count, and the bytes of an item of a list
    for code in properties.values():
        kind, _, item = code.partition(LIST)
        reader = struct.Struct(order + np.dtype(kind).char)
        steps.append((reader, np.dtype(item).itemsize if item else 0))
    axes = [list(properties).index(axis) for axis in "xyz"] if keep else []
    points = array("d")
    starts = [0] * len(steps)
    for _ in range(count):
        for number, (reader, item) in enumerate(steps):
            starts[number] = at
            if item:
                (length,) = reader.unpack_from(data, at)
                if length < 0:
                    raise ValueError("a list has a negative length")
                at += item * length
            at += reader.size
        if at > len(data):
            raise ValueError("its lists are longer than the file")
        if keep:
            points.extend(steps[axis][0].unpack_from(data, starts[axis])[0] for axis in axes)
    return at, np.frombuffer(points, np.float64).reshape(-1, 3)


def _without_lists(lines: Iterable[bytes], properties: Mapping[str, str]) -> Iterator[str]:
    """Rows of a text file with a 0 in the place of each list, so that numbers keep their columns."""
    for line in lines:
        words, left = [], line.decode("latin-1").split()
        at = 0
        for code in properties.values():
            if at >= len(left):
                break
            words.append("0" if LIST in code else left[at])
            at += 1 + (max(int(left[at]), 0) if LIST in code else 0)
        yield " ".join(words)
