"""Text with a point per line: .xyz, and .pts, which may say first how many points follow."""

from pathlib import Path

import numpy as np

from pcreg.formats.promise import complete, fits

SHORTEST_ROW = 6  # bytes: "0 0 0\n"


def read_xyz(path: Path) -> np.ndarray:
    """The first three columns (N, 3)."""
    return np.loadtxt(path, ndmin=2, dtype=np.float64, usecols=(0, 1, 2))


def read_pts(path: Path) -> np.ndarray:
    """The first three columns (N, 3) of the points that follow a line with their number, if there is one."""
    with path.open("rb") as file:
        words = file.readline().split()
        if len(words) != 1:
            return read_xyz(path)
        points = int(words[0])
        fits(path, SHORTEST_ROW * points, path.stat().st_size - file.tell() + 1)  # the last line may not end
        if points == 0:
            return np.empty((0, 3))
        rows = np.loadtxt(file, ndmin=2, dtype=np.float64, usecols=(0, 1, 2))
    return complete(path, rows, points)
