"""Bounds on the memory of readers.

The size of the content of a compressed file stands in its header alone, which may be wrong. A file may unpack
to 16 MiB or to 250 times its own size, whichever is more, but to 2^27 points (3.2 GB) at most. Real scans
unpack to 90 times the size of a .laz or less, which takes 0.3 bytes per point or more.
"""

from pathlib import Path

import numpy as np

from pcreg.runtime.errors import InputError

MAX_UNCHECKED_BYTES = 1 << 24  # of memory, which any file may take
MAX_EXPANSION = 250  # bytes of memory per byte of a larger file
MAX_POINTS = 1 << 27
ROW_BYTES = 26  # of a point in memory: three float64, and masks of finite ones


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
