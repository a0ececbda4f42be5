"""LAS and LAZ, the files of laser scanning, read by laspy and, compressed, by its companion lazrs."""

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pcreg.io.formats.growing import GrowingPoints
from pcreg.io.formats.laz import check_laz
from pcreg.io.size_checks import check_count, check_expansion, check_size
from pcreg.runtime.errors import InputError

CHUNK_POINTS = 1 << 16  # unpacked at a time
MIN_HEADER_BYTES = 227  # of the oldest version
RECORD_HEAD_BYTES = 54  # of a variable length record


def read_las(path: Path) -> np.ndarray:
    """The points (N, 3) float64 of a .las or .laz file, with its scale and offset applied."""
    try:
        import laspy
        import lazrs  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{path}: .las and .laz need laspy and lazrs; type: pip install 'pcreg[las]'"
        ) from error

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
                check_laz(file, path.stat().st_size, header)
            else:
                there = path.stat().st_size - header.offset_to_point_data
                check_size(path, points * header.point_format.size, there)
            out = GrowingPoints(points)
            for chunk in reader.chunk_iterator(CHUNK_POINTS):
                steps = np.stack([chunk[name] for name in "XYZ"], axis=1)
                out.append(steps * header.scales + header.offsets)
    return check_count(path, out.points(), points)


def _check_header(file: BinaryIO, path: Path) -> None:
    """Refuse counts and offsets that the file has no room for; laspy would follow them."""
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
