"""E57 (ASTM E2807), the exchange format of terrestrial scanners, read by pye57."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pcreg.io.formats.bounds import check_count, check_expansion
from pcreg.runtime.errors import InputError
from pcreg.runtime.extras import require

CHUNK_POINTS = 1 << 16  # unpacked at a time
HEADER_BYTES = 48
CARTESIAN = ("cartesianX", "cartesianY", "cartesianZ", "cartesianInvalidState")
SPHERICAL = ("sphericalRange", "sphericalAzimuth", "sphericalElevation", "sphericalInvalidState")


def read_e57(path: Path) -> np.ndarray:
    """Points (N, 3) float64 of all scans of an .e57 file, in its common frame; NaN where marked invalid."""
    with _opened(path) as (file, scans):
        promised = [int(scan.point_count) for scan in scans]
        if min(promised, default=0) < 0:
            raise ValueError("a scan has a negative number of points")
        check_expansion(path, sum(promised))
        parts = [np.empty((0, 3))]  # filled as points are read, as the header may be wrong
        for scan, points in zip(scans, promised, strict=True):
            parts += _parts(file, scan, points)
    return check_count(path, np.concatenate(parts), sum(promised))


def viewpoint_of_e57(path: Path) -> np.ndarray | None:
    """Position (3,) float64 of the scanner of an .e57 file, in the common frame of the file.

    None for several scans, and if the pose is missing or the identity, which tools write by default.
    """
    with _opened(path) as (_, scans):
        if len(scans) != 1 or not scans[0].has_pose():
            return None
        place = np.array(scans[0].translation, dtype=np.float64)
        rotated = not np.array_equal(np.abs(scans[0].rotation), [1, 0, 0, 0])
    return place if np.isfinite(place).all() and (place.any() or rotated) else None


@contextmanager
def _opened(path: Path) -> Iterator[tuple["pye57.E57", list["pye57.ScanHeader"]]]:  # noqa: F821
    """Open the file; yields it with the headers of its scans."""
    require("e57", f"{path}: this format")
    import pye57

    _check_header(path)
    file = pye57.E57(str(path))
    try:
        yield file, [file.get_header(number) for number in range(file.scan_count)]
    finally:
        file.close()


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES or not head.startswith(b"ASTM-E57"):
        raise ValueError("it does not begin with ASTM-E57, or ends within its header")
    length, xml_start, xml_bytes, page = struct.unpack_from("<QQQQ", head, 16)
    size = path.stat().st_size
    if length != size or page != 1024 or xml_start > size or xml_bytes > size - xml_start:
        raise InputError(
            f"{path}: its header promises {length} bytes and the file has {size}, or its parts lie outside; "
            "it is truncated or damaged: write it again"
        )


def _parts(file: "pye57.E57", scan: "pye57.ScanHeader", points: int) -> Iterator[np.ndarray]:  # noqa: F821
    """Yield the points of a scan in parts (N, 3) float64, moved by its pose, until there are `points`."""
    there = set(scan.point_fields)
    fields = CARTESIAN if there.issuperset(CARTESIAN[:3]) else SPHERICAL
    wanted = [name for name in fields if name in there]
    if wanted[:3] != list(fields[:3]):
        raise ValueError("a scan has neither cartesian nor spherical coordinates")
    columns, buffers = file.make_buffers(wanted, min(CHUNK_POINTS, max(points, 1)))
    reader = scan.points.reader(buffers)
    while points > 0 and (count := reader.read()):
        points -= count
        first, second, third = (columns[name][:count] for name in fields[:3])
        if fields is SPHERICAL:
            flat = first * np.cos(third)
            first, second, third = flat * np.cos(second), flat * np.sin(second), first * np.sin(third)
        part = np.stack([first, second, third], axis=1).astype(np.float64, copy=False)
        if fields[3] in columns:
            part[columns[fields[3]][:count] != 0] = np.nan
        yield file.to_global(part, scan.rotation, scan.translation) if scan.has_pose() else part
    reader.close()
