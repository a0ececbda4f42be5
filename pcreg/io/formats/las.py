"""LAS, the format of laser scanning, read by laspy, and its compressed form LAZ, read by lazrs."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcreg.io.formats.bounds import check_count, check_expansion, check_size
from pcreg.runtime.extras import require

CHUNK_POINTS = 1 << 16  # unpacked at a time
MIN_HEADER_BYTES = 227  # of the oldest version
RECORD_HEAD_BYTES = 54  # of a variable length record
LAYERED = 3  # the compressor of point formats 6 to 10, whose chunks have a layer per attribute
LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}  # number by kind of item; extra bytes (14) have one each


def read_las(path: Path) -> np.ndarray:
    """Points (N, 3) float64 of a .las or .laz file, with its scale and offset applied."""
    require("las", f"{path}: this format")
    import laspy

    with path.open("rb") as file:
        _check_header(file, path)
        file.seek(0)
        only = laspy.DecompressionSelection.XY_RETURNS_CHANNEL | laspy.DecompressionSelection.Z
        with laspy.open(
            file,
            closefd=False,
            read_evlrs=False,
            laz_backend=laspy.LazBackend.Lazrs,
            decompression_selection=only,
        ) as reader:
            points, header = reader.header.point_count, reader.header
            if header.are_points_compressed:
                check_expansion(path, points)
                _check_laz(file, path.stat().st_size, header)
            else:
                there = path.stat().st_size - header.offset_to_point_data
                check_size(path, points * header.point_format.size, there)
            parts = [np.empty((0, 3))]  # filled as points are read, as the header may be wrong
            for chunk in reader.chunk_iterator(CHUNK_POINTS):
                steps = np.stack([chunk[name] for name in "XYZ"], axis=1)
                parts.append(steps * header.scales + header.offsets)
    return check_count(path, np.concatenate(parts), points)


def _check_header(file: BinaryIO, path: Path) -> None:
    """Raise ValueError for counts and offsets beyond the file, which laspy does not check."""
    head, size = file.read(MIN_HEADER_BYTES), path.stat().st_size
    if len(head) < MIN_HEADER_BYTES or not head.startswith(b"LASF"):
        raise ValueError("it does not begin with LASF, or ends within its header")
    (header_bytes,) = struct.unpack_from("<H", head, 94)
    start, records = struct.unpack_from("<II", head, 96)
    if (
        not MIN_HEADER_BYTES <= header_bytes <= start <= size
        or records * RECORD_HEAD_BYTES > start - header_bytes
    ):
        raise ValueError("its header does not fit into the file")


def _check_laz(file: BinaryIO, size: int, header: Any) -> None:
    """Raise ValueError unless the tables of a .laz file and its `size` in bytes agree (Isenburg, 2013)."""
    # lazrs checks no sizes: it allocates gigabytes for a damaged one, and panics if an item is missing
    import lazrs

    at, start = file.tell(), header.offset_to_point_data
    record = header.vlrs.get_by_id("laszip encoded", (22204,))[0].record_data_bytes()
    compressor, coder = struct.unpack_from("<HH", record)
    chunk_points, count = struct.unpack_from("<I16xH", record, 12)
    items = list(struct.iter_unpack("<HHH", record[34:]))  # kind, bytes, version
    point_bytes = sum(width for _, width, _ in items)
    if compressor not in (1, 2, 3) or coder or not chunk_points or not len(items) == count > 0:
        raise ValueError("its description of the compression is damaged")
    if point_bytes != header.point_format.size:
        raise ValueError("its description of the compression does not fit its points")

    file.seek(start)
    table = _chunk_table_offset(file, start, size)
    file.seek(table)
    _version, chunks = struct.unpack("<II", file.read(8))
    if chunks > table - start:  # a chunk takes at least one byte
        raise ValueError(f"its table promises {chunks} chunks, more than the file holds")
    file.seek(start)
    place = start + 8
    for _, chunk_bytes in lazrs.read_chunk_table(file, lazrs.LazVlr(record)) if chunks else ():
        layers = sum(width if kind == 14 else LAYERS.get(kind, 0) for kind, width, _ in items)
        if compressor == LAYERED and header.point_count:
            file.seek(place + point_bytes + 4)  # after the first point and the number of points
            promised = sum(struct.unpack(f"<{layers}I", file.read(4 * layers)))
            if promised + point_bytes + 4 + 4 * layers != chunk_bytes:
                raise ValueError("the layers of a chunk are not as long as the chunk")
        place += chunk_bytes
    if place > table:
        raise ValueError("its chunks are longer than the file")
    file.seek(at)


def _chunk_table_offset(file: BinaryIO, start: int, size: int) -> int:
    """Byte at which the table of chunks begins, read where the points begin."""
    (table,) = struct.unpack("<q", file.read(8))
    if table == -1:  # written as a stream: the offset is at the end of the file
        file.seek(size - 8)
        (table,) = struct.unpack("<q", file.read(8))
    if not start + 8 <= table <= size - 8:
        raise ValueError("its table of chunks lies outside the file")
    return table
