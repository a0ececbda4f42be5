"""One original point per cell of a grid, in bounded memory and without PyTorch.

The rule is that of pcreg.kernels.grid, which does it on any device: the same rows, to the last bit.
"""

import math

import numpy as np

from pcreg.geometry.se3 import box
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError

BLOCK_POINTS = 1 << 19  # processed together, in about 50 MB
MAX_TABLE_CELLS = 16  # for each point; beyond, a table takes longer than sorting
MAX_CELLS = 2**62  # of the box around a cloud, numbered by int64


def voxel_downsample(points: np.ndarray, voxel: float, origin: np.ndarray | None = None) -> np.ndarray:
    """Rows (M,) int64 of points (N, 3) to keep: of each cell the one nearest its centre.

    A point is in the cell floor((p - origin) / voxel). Rows are in the order of the cells. Of equally near
    points the one with the smallest x, y, z is kept.

    Cells start at the origin of the cloud's frame if `origin` (3,) is left out, as they do in FCGF and in
    the fragments of 3DMatch: a cloud that was downsampled there stays whole. Raises InputError for a voxel
    that is too small to number its cells.
    """
    if len(points) == 0:
        return np.empty(0, dtype=np.int64)
    origin = np.zeros(3) if origin is None else origin
    lowest, shape = cells_around(points, voxel, origin)

    def nearest(rows: np.ndarray | slice) -> np.ndarray:
        return _nearest(points[rows], voxel, origin, lowest, shape)

    starts = range(0, len(points), BLOCK_POINTS)
    if len(starts) == 1:
        return nearest(slice(None))
    found = parallel.each(lambda start: start + nearest(slice(start, start + BLOCK_POINTS)), starts)
    rows = np.concatenate(found)
    return rows[nearest(rows)]  # the best of the whole is the best of its block


def cells_around(points: np.ndarray, voxel: float, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest cell (3,) of points (N, 3), N > 0, and how many cells (3,) their box has, float64.

    Raises InputError for a voxel that is too small to number them.
    """
    corners = box(points).astype(np.float64)
    with np.errstate(over="ignore"):
        lowest, highest = np.floor((corners - origin) / voxel)
        shape = highest - lowest + 1
    if not (np.abs([lowest, highest]) < MAX_CELLS).all() or math.prod(map(int, shape)) > MAX_CELLS:
        raise InputError(f"voxel {voxel:g} m is too small for this cloud, which has 2^62 cells or more")
    return lowest, shape


def _nearest(
    points: np.ndarray, voxel: float, origin: np.ndarray, lowest: np.ndarray, shape: np.ndarray
) -> np.ndarray:
    """`voxel_downsample` of points (N, 3), N > 0, in a box of cells that may be larger than theirs."""
    key = np.zeros(len(points), dtype=np.int64)
    inside = []
    for axis in range(3):
        position = (points[:, axis] - origin[axis]) / voxel
        cell = np.floor(position)
        position -= cell  # in [0, 1)
        key *= int(shape[axis])
        key += (cell - lowest[axis]).astype(np.int64)
        inside.append(position)
    if (key[1:] > key[:-1]).all():  # downsampled before
        return np.arange(len(points))
    from_centre = np.zeros(len(points))
    for position in inside:
        from_centre += (position - 0.5) ** 2
    cells = math.prod(map(int, shape))
    if cells <= MAX_TABLE_CELLS * len(points):
        rows = _by_table(key, from_centre, cells)
    else:
        rows = _by_sorting(key, from_centre)
    key = key[rows]
    if (key[1:] == key[:-1]).any():  # equally near ones
        again = np.lexsort((rows, *(inside[axis][rows] for axis in (2, 1, 0)), key))
        rows, key = rows[again], key[again]
        rows = rows[np.concatenate([[True], key[1:] != key[:-1]])]
    return rows


def _by_table(key: np.ndarray, from_centre: np.ndarray, cells: int) -> np.ndarray:
    """Rows (M,) of the least `from_centre` (N,) of each key (N,) below `cells`, in the order of the keys."""
    least = np.full(cells, np.inf)
    np.minimum.at(least, key, from_centre)
    rows = np.flatnonzero(from_centre == least[key])
    return rows[np.argsort(key[rows], kind="stable")]


def _by_sorting(key: np.ndarray, from_centre: np.ndarray) -> np.ndarray:
    """The same for keys of any size."""
    order = np.argsort(key)
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))  # of each cell
    ranked = from_centre[order]
    least = np.minimum.reduceat(ranked, first)
    return order[ranked == np.repeat(least, np.diff(first, append=len(key)))]
