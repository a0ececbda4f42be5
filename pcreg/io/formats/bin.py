"""Bare rows of float32 (.bin), as KITTI (x y z reflectance) and nuScenes (x y z intensity ring) write them.

Such a file has no header. The length of its rows is estimated from their values: at the right length the
columns have different distributions, coordinates and intensities; at any other length each has the same
mixture of all.
"""

from pathlib import Path

import numpy as np

from pcreg.runtime.errors import InputError

USUAL_COLUMNS = (4, 5)  # columns of KITTI and of nuScenes
COLUMN_COUNTS = range(3, 13)  # tried lengths of a row
SAMPLE_NUMBERS = 1 << 14
MIN_NUMBERS = 1 << 12  # with fewer nothing is estimated
MIN_DISTANCE = 0.2  # Kolmogorov-Smirnov; a mixture compared with itself has less than 0.05
MIN_DISTANCE_RATIO = 0.9  # to the largest distance: rows of 8 have that too where rows of 4 are right


def read_bin(path: Path, columns: int | None = None) -> np.ndarray:
    """Rows (N, columns) float32, mapped from the file; by default of 4 or 5 columns, by content.

    Raises InputError for a size that is no whole number of rows, and for content of neither kind.
    """
    values = path.stat().st_size // 4
    whole = path.stat().st_size % 4 == 0
    if columns is None:
        columns = _columns_by_content(path, values) if whole else None
    elif not 3 <= columns <= 32:
        raise InputError(f"{path}: rows of {columns} columns hold no points; say 3 to 32 with --columns")
    elif not whole or values % columns:
        raise InputError(
            f"{path}: {path.stat().st_size} bytes are no whole number of rows of {columns} float32; the file "
            "is truncated, or has another number of columns: say it with --columns"
        )
    if columns is None:
        raise InputError(
            f"{path}: {path.stat().st_size} bytes are no whole number of 16-byte KITTI points, nor look like "
            "20-byte ones of nuScenes; the file is truncated, or has another number of columns: say it "
            "with --columns"
        )
    return np.memmap(path, "<f4", "r").reshape(-1, columns)


def _columns_by_content(path: Path, values: int) -> int | None:
    """4 or 5; None if the size fits neither. Raises InputError if the content looks like another number."""
    numbers = np.memmap(path, "<f4", "r")[:SAMPLE_NUMBERS]
    likely = likely_columns(np.nan_to_num(numbers, nan=np.float32(1e38)))
    if likely is None:  # too few, or all of one kind
        return 4 if values % 4 == 0 else None
    if likely not in USUAL_COLUMNS:
        raise InputError(
            f"{path}: looks like rows of {likely} numbers, neither of KITTI's 4 nor of nuScenes' 5; say how "
            "many columns it has with --columns"
        )
    if values % likely:
        raise InputError(
            f"{path}: looks like rows of {likely} numbers, of which its {values} are no whole number; it is "
            "truncated: copy it again, or say with --columns how many columns it has"
        )
    return likely


def likely_columns(numbers: np.ndarray) -> int | None:
    """Length of a row of the numbers (S,), estimated; None if it cannot be."""
    if len(numbers) < MIN_NUMBERS:
        return None
    edges = np.unique(np.quantile(numbers, np.linspace(0.05, 0.95, 19)))
    below = numbers[:, None] <= edges
    distances = {}  # the largest Kolmogorov-Smirnov distance between a column and all numbers
    for length in COLUMN_COUNTS:
        rows = below[: len(below) // length * length].reshape(-1, length, len(edges))
        share = rows.mean(0)
        distances[length] = np.abs(share - share.mean(0)).max()
    largest = max(distances.values())
    if largest < MIN_DISTANCE:
        return None
    return next(length for length in COLUMN_COUNTS if distances[length] >= MIN_DISTANCE_RATIO * largest)
