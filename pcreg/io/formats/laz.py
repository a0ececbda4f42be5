"""What has to be true of the compressed points of a .laz file before lazrs may unpack them.

lazrs does not check sizes: a damaged one makes it allocate gigabytes, and a missing item ends in a panic,
which writes to stderr and is no Exception. Layout after the specification of LASzip (Isenburg, 2013).
"""

import struct
from typing import Any, BinaryIO

LAYERED = 3  # the compressor of point formats 6 to 10, whose chunks have a layer per attribute
LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}  # by kind of item; of extra bytes (14) each has its own


def check_laz(file: BinaryIO, size: int, header: Any) -> None:
    """Raise ValueError unless description, table and chunks of a file of `size` bytes fit together.

    `header` is laspy's. The file stands at the first chunk afterwards, as it did before.
    """
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
    table = _place_of_table(file, start, size)
    file.seek(table)
    _version, chunks = struct.unpack("<II", file.read(8))
    if chunks > table - start:  # a chunk takes a byte and more
        raise ValueError(f"its table promises {chunks} chunks, more than the file holds")
    file.seek(start)
    place = start + 8
    for _, chunk_bytes in lazrs.read_chunk_table(file, lazrs.LazVlr(record)) if chunks else ():
        layers = sum(width if kind == 14 else LAYERS.get(kind, 0) for kind, width, _ in items)
        if compressor == LAYERED and header.point_count:
            file.seek(place + point_bytes + 4)  # behind the first point and the number of all
            promised = sum(struct.unpack(f"<{layers}I", file.read(4 * layers)))
            if promised + point_bytes + 4 + 4 * layers != chunk_bytes:
                raise ValueError("the layers of a chunk are not as long as the chunk")
        place += chunk_bytes
    if place > table:
        raise ValueError("its chunks are longer than the file")
    file.seek(at)


def _place_of_table(file: BinaryIO, start: int, size: int) -> int:
    """Where the table of chunks begins, in a file that stands at its points."""
    (table,) = struct.unpack("<q", file.read(8))
    if table == -1:  # written as a stream: the place follows the points
        file.seek(size - 8)
        (table,) = struct.unpack("<q", file.read(8))
    if not start + 8 <= table <= size - 8:
        raise ValueError("its table of chunks lies outside the file")
    return table
