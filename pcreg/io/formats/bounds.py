"""Bounds on the memory of readers: size checks, growing points, and records read in parts.

Only the header of a compressed file says how large its content is. Any may unpack to 16 MiB, larger ones to
250 times their size, and none to more than 2^27 points (3.2 GB). Real scans take 0.3 bytes a point and more
in .laz, a ninetieth of their memory.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pcreg.runtime.errors import InputError

MAX_UNCHECKED_BYTES = 1 << 24  # of memory, which any file may take
MAX_EXPANSION = 250  # bytes of memory for a byte of a larger file
MAX_POINTS = 1 << 27
ROW_BYTES = 26  # of a point in memory: three float64, and masks of finite ones
FIRST_ROWS = 1 << 12  # of growing points
CHUNK_RECORDS = 1 << 16  # read at a time, so that a page of the file is fetched once for x, y and z


def check_size(path: Path, promised: int, there: int) -> None:
    """Raise InputError if a header promises more bytes than are `there`, or a negative number."""
    if not 0 <= promised <= there:
        raise InputError(
            f"{path}: its header promises {promised} bytes of points where the file has {there}; "
            "the file is truncated or damaged: write it again"
        )


def check_expansion(path: Path, points: int, further: int = 0) -> None:
    """Raise InputError if `points` and `further` bytes exceed the bounds of compressed files."""
    max_bytes = max(MAX_UNCHECKED_BYTES, MAX_EXPANSION * path.stat().st_size)
    if not 0 <= points <= MAX_POINTS or points * ROW_BYTES + further > max_bytes:
        raise InputError(
            f"{path}: its header promises {points} points, more than is read from a compressed file of this "
            "size; it is damaged, or compressed further than is read here: write it again, uncompressed"
        )


def check_count(path: Path, rows: np.ndarray, promised: int) -> np.ndarray:
    """Return the rows; InputError unless there are as many as promised."""
    if len(rows) != promised:
        raise InputError(
            f"{path}: its header promises {promised} points and {len(rows)} can be read; "
            "the file is truncated or damaged: write it again"
        )
    return rows


class GrowingPoints:
    """Points (N, 3) float64 read in parts, N at most `promised`, in memory that grows with their number."""

    def __init__(self, promised: int):
        self._promised = promised
        self._rows = np.empty((min(promised, FIRST_ROWS), 3))
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def append(self, part: np.ndarray) -> None:
        """Add points (M, 3); ValueError if there are more than promised then."""
        filled = self._filled + len(part)
        if filled > self._promised:
            raise ValueError(f"it holds more than the {self._promised} points that it promises")
        if filled > len(self._rows):
            room = min(max(filled, 3 * len(self._rows) // 2), self._promised)
            self._rows.resize((room, 3), refcheck=False)  # in place where the system can
        self._rows[self._filled : filled] = part
        self._filled = filled

    def points(self) -> np.ndarray:
        """The points that were appended (N, 3)."""
        return self._rows[: self._filled]


def columns_of(records: np.ndarray, fields: Sequence[str] = "xyz") -> np.ndarray:
    """Points (N, 3) float64 of records (N,) on the disk with fields x, y and z, or other three."""
    points = np.empty((len(records), 3))
    for start in range(0, len(records), CHUNK_RECORDS):
        chunk = slice(start, start + CHUNK_RECORDS)
        part = np.array(records[chunk])  # aligned in memory, which the file need not be
        for column, axis in enumerate(fields):
            points[chunk, column] = part[axis]
    return points
