"""Point cloud data files of PCL (.pcd), text, binary and binary_compressed: points and their viewpoints."""

import math
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count, check_expansion, check_size

MAX_HEADER_BYTES = 1 << 16
POINT, SEEN_FROM = ("x", "y", "z"), ("vp_x", "vp_y", "vp_z")  # fields, as in PCL's PointWithViewpoint
NO_VIEWPOINT = [0, 0, 0, 1, 0, 0, 0]
NUMPY_KINDS = {"F": "f", "I": "i", "U": "u"}  # by the TYPE of a field


def read_pcd(path: Path, fields: tuple[str, str, str] = POINT) -> np.ndarray:
    """Points (N, 3) of a .pcd file, or three other `fields` of the points."""
    with path.open("rb") as file:
        header = _header(file)
        row, points = _row(header, fields), int(header["POINTS"][0])
        left = path.stat().st_size - file.tell()
        match header["DATA"]:
            case ["ascii"]:
                widths = [math.prod(row[name].shape) for name in row.names]  # in numbers
                check_size(path, 2 * points * sum(widths), left + 1)  # each a digit and a space or line end
                starts = dict(zip(row.names, np.cumsum([0, *widths]), strict=False))
                rows = np.loadtxt(file, ndmin=2, max_rows=points, usecols=[starts[axis] for axis in fields])
                return check_count(path, rows, points)
            case ["binary"]:
                check_size(path, points * row.itemsize, left)
                if points == 0:
                    return np.empty((0, 3))
                records = np.memmap(file, row, "r", file.tell(), points)
                columns = [records[axis] for axis in fields]
            case ["binary_compressed"]:
                content = _unpacked(file, path, points * row.itemsize, points)
                places = [(row[axis], points * row.fields[axis][1]) for axis in fields]
                columns = [np.frombuffer(content, kind, points, start) for kind, start in places]
            case other:
                raise ValueError(f"its data are {other}; use ascii, binary or binary_compressed")
        return np.stack(columns, axis=1, dtype=np.float64, casting="unsafe")


def viewpoint_of_pcd(path: Path) -> np.ndarray | None:
    """Sensor position (3,) float64 of a .pcd file, or (N, 3) with one per point.

    The VIEWPOINT line has a position and a quaternion w x y z; fields vp_x, vp_y and vp_z hold a position per
    point. None for the defaults of the format: 0 0 0 1 0 0 0 in the line, and fields that are all zero.
    """
    with path.open("rb") as file:
        header = _header(file)
    if set(SEEN_FROM) <= set(header["FIELDS"]):
        seen_from = read_pcd(path, SEEN_FROM)
        return seen_from if seen_from.any() else None
    stated = [float(number) for number in header.get("VIEWPOINT", NO_VIEWPOINT)]
    if len(stated) != 7 or not np.isfinite(stated).all():
        raise ValueError("its VIEWPOINT line does not hold seven numbers")
    return None if stated == NO_VIEWPOINT else np.array(stated[:3])


def _header(file: BinaryIO) -> dict[str, list[str]]:
    """Read the header up to the data; returns the words after each key."""
    header: dict[str, list[str]] = {}
    while "DATA" not in header and file.tell() < MAX_HEADER_BYTES:
        line = file.readline(MAX_HEADER_BYTES)
        if not line:
            break
        key, *values = line.decode("latin-1").split() or [""]
        header[key] = values
    if header.get("WIDTH") and header.get("HEIGHT"):
        header.setdefault("POINTS", [str(int(header["WIDTH"][0]) * int(header["HEIGHT"][0]))])
    for key in ("FIELDS", "SIZE", "TYPE", "POINTS", "DATA"):
        if not header.get(key):
            raise ValueError(f"its header has no {key} line")
    header["FIELDS"] = [name.lower() for name in header["FIELDS"]]
    return header


def _row(header: dict[str, list[str]], wanted: tuple[str, str, str]) -> np.dtype:
    """Layout of a point: the `wanted` fields under their names, others under their number."""
    names = header["FIELDS"]
    counts = header.get("COUNT", ["1"] * len(names))
    fields = []
    for number, (name, kind, size, count) in enumerate(
        zip(names, header["TYPE"], header["SIZE"], counts, strict=True)
    ):
        if not 0 < int(count) < MAX_HEADER_BYTES:
            raise ValueError(f"its field {name} has count {count}")
        scalar = np.dtype(f"<{NUMPY_KINDS[kind]}{int(size)}")
        axis = name in wanted and int(count) == 1
        fields.append((name if axis else str(number), scalar, () if axis else (int(count),)))
    row = np.dtype(fields)
    if missing := [axis for axis in wanted if axis not in row.names]:
        raise ValueError(f"its points have no field {missing[0]}")
    return row


def _unpacked(file: BinaryIO, path: Path, size: int, points: int) -> bytearray:
    """The `size` bytes of the points of a compressed file, field after field."""
    left = path.stat().st_size - file.tell()
    check_size(path, 8, left)
    packed, unpacked = (int(number) for number in np.frombuffer(file.read(8), "<u4"))
    check_size(path, packed, left - 8)
    if unpacked != size:
        raise ValueError(f"it unpacks to {unpacked} bytes and its points take {size}")
    check_expansion(path, points, packed + unpacked)
    return _decompress(file.read(packed), unpacked)


def _decompress(packed: bytes, size: int) -> bytearray:
    """Unpack `size` bytes of LZF (LibLZF): runs of up to 32 bytes, and copies of earlier bytes."""
    out, at = bytearray(), 0
    while at < len(packed) and len(out) <= size:
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        # A copy: the upper three bits are its length - 2, the other bits its distance - 1
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        distance = ((control & 31) << 8) + packed[at] + 1
        at += 1
        start, length = len(out) - distance, length + 2
        if start < 0:
            raise ValueError("its compressed points are damaged")
        piece = out[start : start + length]
        out += (piece * (length // len(piece) + 1))[:length]  # a copy may overlap its own output
    if len(out) != size:
        raise ValueError("its compressed points are damaged")
    return out
