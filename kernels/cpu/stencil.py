"""Which points a convolution centre sees, and through which cell of its kernel: see pcreg.kernels.stencil."""

import math

import numpy as np
from numpy.typing import NDArray

from pcreg.kernels.cpu.neighbors import all_pairs, in_parts
from pcreg.kernels.ppf_cells import ppf_cells

Normals = tuple[
    np.ndarray, np.ndarray
]  # of the centres (N, 3) and of the points (P, 3), of the points' dtype
Rows = NDArray[np.int64]


def default_radius(size: float, kernel_size: int) -> float:
    """The radius in metres of the ball with the volume of kernel_size^3 cells of edge `size`."""
    return float(size * kernel_size * (3 / (4 * math.pi)) ** (1 / 3))


def half_width(kernel_size: int) -> int:
    """Cells from the kernel's centre to its face; ValueError for an even kernel size."""
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise ValueError(f"kernel size must be odd and positive, such as 1, 3, 5 or 7, got {kernel_size}")
    return (kernel_size - 1) // 2


def neighbours(
    centres: np.ndarray,
    points: np.ndarray,
    centre_lengths: np.ndarray,
    lengths: np.ndarray,
    size: float,
    kernel_size: int,
    radius: float,
    normals: Normals | None,
) -> tuple[Rows, Rows, Rows]:
    """i, j and k (T,) of the triplets, in no particular order."""
    i, j, offset = all_pairs(centres, points, centre_lengths, lengths, radius)
    if normals is None:
        return i, j, _kernel_cell(offset, size, kernel_size)
    own, other = (some.T.take(rows, 1) for some, rows in zip(normals, (i, j), strict=True))
    return i, j, ppf_cells(offset, own, other, radius, kernel_size)


def counts(
    points: np.ndarray,
    lengths: np.ndarray,
    size: float,
    kernel_size: int,
    radius: float,
    normals: np.ndarray | None,
) -> NDArray[np.int32]:
    """How many points of its own cloud each point sees through each kernel cell: (K, N)."""
    found = np.empty((kernel_size**3, len(points)), np.int32)
    for rows, some in in_parts(lengths):
        whole = rows.stop - rows.start == len(points)
        centres = points if whole else points[rows]
        both = None if normals is None else (normals if whole else normals[rows], normals)
        i, _, k = neighbours(centres, points, some, lengths, size, kernel_size, radius, both)
        flat = np.bincount(k * len(centres) + i, minlength=kernel_size**3 * len(centres))
        found[:, rows] = flat.reshape(kernel_size**3, len(centres))
    return found


def _kernel_cell(offset: np.ndarray, size: float, kernel_size: int) -> Rows:
    """k (T,) of offsets (3, T) along the axes."""
    half = half_width(kernel_size)
    x, y, z = np.rint(offset / size).clip(-half, half) + half
    cells: Rows = ((x * kernel_size + y) * kernel_size + z).astype(np.int64)  # small integers are exact
    return cells
