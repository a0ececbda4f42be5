"""One original point per cell of a grid, in bounded memory.

pcreg.kernels.grid follows the same rule within the network, and keeps the same rows.
"""

import math

import numpy as np

from pcreg.arrays import Array, is_on_host, like, namespace, scatter_min
from pcreg.geometry.se3 import box
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError

BLOCK_POINTS = 1 << 19  # processed together, in about 50 MB
GPU_BLOCK_POINTS = 1 << 24
MAX_TABLE_CELLS = 16  # per point; with more cells a table takes longer than sorting
MAX_CELLS = 2**62  # of the box around a cloud, numbered by int64


def voxel_downsample(points: Array, voxel: float, origin: np.ndarray | None = None) -> Array:
    """Rows of the points to keep, one per occupied cell, in the order of the cells.

    Of each cell floor((p - origin) / voxel) the point nearest its centre is kept; of equally near points the
    one with the smallest x, then y, then z.

    Args:
        points: (N, 3) float64, metres, on any device.
        voxel: Edge of a cell, metres.
        origin: (3,) float64 on the host, corner of a cell. By default the origin of the cloud's frame, as in
            FCGF and in the fragments of 3DMatch: a cloud that was downsampled there stays whole.

    Returns:
        Rows (M,) int64, on the device of the points.

    Raises:
        InputError: The voxel is too small to number its cells.
    """
    if len(points) == 0:
        return like(np.empty(0, dtype=np.int64), points)
    origin = np.zeros(3) if origin is None else origin
    lowest, shape = cells_around(points, voxel, origin)

    def nearest(rows: Array | slice) -> Array:
        return _nearest(points[rows], voxel, origin, lowest, shape)

    device, size = ("cpu", BLOCK_POINTS) if is_on_host(points) else ("cuda", GPU_BLOCK_POINTS)
    starts = range(0, len(points), size)
    if len(starts) == 1:
        return nearest(slice(None))
    found = parallel.each(lambda start: start + nearest(slice(start, start + size)), starts, device)
    rows = namespace(points).concat(found)
    return rows[nearest(rows)]  # the nearest point of a cell is also the nearest of its block


def cells_around(points: Array, voxel: float, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest cell and numbers of cells, (3,) each, of points (N, 3), N > 0; InputError for too many."""
    corners = box(points).astype(np.float64)
    with np.errstate(over="ignore"):
        lowest, highest = np.floor((corners - origin) / voxel)
        shape = highest - lowest + 1
    if not (np.abs([lowest, highest]) < MAX_CELLS).all() or math.prod(map(int, shape)) > MAX_CELLS:
        larger = np.ptp(corners, axis=0).max() / 100
        raise InputError(f"voxel {voxel:g} m is too small for this cloud; try one of {larger:.2g} m")
    return lowest, shape


def _nearest(points: Array, voxel: float, origin: np.ndarray, lowest: np.ndarray, shape: np.ndarray) -> Array:
    """`voxel_downsample` of points (N, 3), N > 0, in a box of cells that contains them."""
    xp = namespace(points)
    # Divide by an array: instead of dividing by a number, PyTorch multiplies by its rounded inverse
    corner, size, first = like(np.stack([origin, np.full(3, voxel), lowest]), points)[:, :, None]
    inside = xp.stack([points[:, axis] for axis in range(3)])
    inside -= corner
    inside /= size
    cells = xp.floor(inside)
    inside -= cells  # in [0, 1)
    cells -= first
    key, y, z = xp.astype(cells, xp.int64)
    for along, cell in ((shape[1], y), (shape[2], z)):
        key *= int(along)
        key += cell
    if (key[1:] > key[:-1]).all():  # one point per cell, in order
        return xp.arange(len(points), device=points.device)
    from_centre, y, z = (inside - 0.5) ** 2
    from_centre += y
    from_centre += z
    count = math.prod(map(int, shape))
    if count <= MAX_TABLE_CELLS * len(points):
        rows = _by_table(key, from_centre, count)
    else:
        rows = _by_sorting(key, from_centre)
    key = key[rows]
    if (key[1:] == key[:-1]).any():  # cells with equally near points
        order = xp.argsort(rows)
        for values in (*(inside[axis][rows] for axis in (2, 1, 0)), key):
            order = order[xp.argsort(values[order], stable=True)]
        rows, key = rows[order], key[order]
        rows = rows[_begins(key)]
    return rows


def _by_table(key: Array, from_centre: Array, cells: int) -> Array:
    """Rows (M,) of the least `from_centre` (N,) of each key (N,) below `cells`, in the order of the keys."""
    xp = namespace(key)
    least = scatter_min(from_centre, key, cells)
    rows = xp.nonzero(from_centre == least[key])[0]
    return rows[xp.argsort(key[rows], stable=True)]


def _by_sorting(key: Array, from_centre: Array) -> Array:
    """`_by_table` for keys of any size."""
    xp = namespace(key)
    order = xp.argsort(key, stable=False)
    number = xp.cumulative_sum(xp.astype(_begins(key[order]), xp.int64)) - 1  # of the occupied cells
    ranked = from_centre[order]
    least = scatter_min(ranked, number, int(number[-1]) + 1)
    return order[ranked == least[number]]


def _begins(key: Array) -> Array:
    """True (N,) for the first of sorted keys (N,), and where they differ from the key before."""
    xp = namespace(key)
    begins = xp.ones_like(key, dtype=xp.bool)
    begins[1:] = key[1:] != key[:-1]
    return begins
