"""What a header promises, held against the size of the file that it heads."""

from pathlib import Path

import numpy as np

from pcreg.errors import InputError

GROWTH = 10  # bytes of memory that reading may take for a byte of file
ROW_BYTES = 26  # of a point in memory: three float64, and the marks of what is finite


def fits(path: Path, promised: int, there: int) -> None:
    """Raise InputError if a header promises more bytes than there are, or a negative number."""
    if not 0 <= promised <= there:
        raise InputError(
            f"{path}: its header promises {promised} bytes of points where the file has {there}; "
            "the file is truncated or damaged: write it again"
        )


def grows_little(path: Path, points: int, further: int = 0) -> None:
    """Raise InputError if so many points and `further` bytes take more than ten times the file's size.

    Only compressed files can promise that much: real scans do not shrink so far, crafted files do.
    """
    if points < 0 or points * ROW_BYTES + further > GROWTH * path.stat().st_size:
        raise InputError(
            f"{path}: its header promises {points} points, more than a file of this size holds; it is "
            "damaged, or compressed beyond what is read here: write it again, uncompressed"
        )


def complete(path: Path, rows: np.ndarray, promised: int) -> np.ndarray:
    """The rows, if they are as many as promised; InputError otherwise."""
    if len(rows) != promised:
        raise InputError(
            f"{path}: its header promises {promised} points and {len(rows)} can be read; "
            "the file is truncated or damaged: write it again"
        )
    return rows
