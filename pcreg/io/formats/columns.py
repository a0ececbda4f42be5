"""Coordinates taken out of records on the disk."""

from collections.abc import Sequence

import numpy as np

CHUNK_RECORDS = 1 << 16  # records at a time, so that a page of the file is fetched once for x, y and z


def columns_of(records: np.ndarray, fields: Sequence[str] = "xyz") -> np.ndarray:
    """The points (N, 3) float64 of records (N,) with fields x, y and z, or other three."""
    points = np.empty((len(records), 3))
    for start in range(0, len(records), CHUNK_RECORDS):
        chunk = slice(start, start + CHUNK_RECORDS)
        part = np.array(records[chunk])  # aligned in memory, which the file need not be
        for column, axis in enumerate(fields):
            points[chunk, column] = part[axis]
    return points
