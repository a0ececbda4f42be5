"""LAS and LAZ, the files of laser scanning, read by laspy and, compressed, by its companion lazrs."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcreg.errors import InputError
from pcreg.formats.promise import complete, fits, grows_little

CHUNK = 1 << 16  # points unpacked at a time
SMALLEST = 227  # bytes of the oldest header
RECORD = 54  # bytes of the head of a variable length record


def read_las(path: Path) -> np.ndarray:
    """The points (N, 3) float64 of a .las or .laz file, with its scale and offset applied."""
    try:
        import laspy
        import lazrs  # noqa: F401
    except ImportError as error:
        raise InputError(f"{path}: .las and .laz need laspy and lazrs; type: pip install 'pcreg[las]'") from error

    with path.open("rb") as file:
        _check_header(file, path)
        file.seek(0)
        with laspy.open(
            file, closefd=False, read_evlrs=False, laz_backend=laspy.LazBackend.Lazrs
        ) as reader:
            points, header = reader.header.point_count, reader.header
            if header.are_points_compressed:
                _check_chunks(file, path, header.offset_to_point_data)
                grows_little(path, points)
            else:
                there = path.stat().st_size - header.offset_to_point_data
                fits(path, points * header.point_format.size, there)
            out, filled = np.empty((points, 3)), 0
            for chunk in _chunks(reader):
                part = out[filled : filled + len(chunk)]
                for axis, name in enumerate("XYZ"):
                    part[:, axis] = chunk[name] * header.scales[axis] + header.offsets[axis]
                filled += len(part)
    return complete(path, out[:filled], points)


def _check_header(file: BinaryIO, path: Path) -> None:
    """Refuse counts and offsets that the file has no room for; laspy would follow them."""
    head, size = file.read(SMALLEST), path.stat().st_size
    if len(head) < SMALLEST or not head.startswith(b"LASF"):
        raise ValueError("it does not begin with LASF, or ends within its header")
    (header_bytes,) = struct.unpack_from("<H", head, 94)
    start, records = struct.unpack_from("<II", head, 96)
    if not SMALLEST <= header_bytes <= start <= size or records * RECORD > start - header_bytes:
        raise ValueError("its header does not fit into the file")


def _check_chunks(file: BinaryIO, path: Path, start: int) -> None:
    """Refuse a table of compressed chunks that the file has no room for; lazrs would make room for it."""
    size, at = path.stat().st_size, file.tell()
    file.seek(start)
    (table,) = struct.unpack("<q", file.read(8))
    if table == -1:  # written as a stream: the place of the table is at the end of the file
        file.seek(size - 8)
        (table,) = struct.unpack("<q", file.read(8))
    if not start <= table <= size - 8:
        raise ValueError("its table of chunks lies outside the file")
    file.seek(table)
    _version, chunks = struct.unpack("<II", file.read(8))
    if chunks > table - start:  # a chunk takes a byte and more
        raise ValueError(f"its table promises {chunks} chunks, more than the file holds")
    file.seek(at)


def _chunks(reader: Any) -> Iterator[Any]:
    """The points in pieces; a panic in lazrs, which is no Exception, becomes one."""
    try:
        yield from reader.chunk_iterator(CHUNK)
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise ValueError("its compressed points are damaged") from error
        raise
