"""Neighbours of convolution centres, and the kernel cells of these neighbours.

The kernel is a local t x t x t grid, t odd, centred on an original point. Its cells have edge h; cell
(x, y, z), each from -(t-1)/2 to (t-1)/2, has index k = ((x + c) t + (y + c)) t + (z + c) with
c = (t-1)/2, the order of torch.nn.functional.conv3d.

A point-pair kernel has cells of distance and heights instead of axes. For centre i with normal n_i and point
j with normal n_j at the offset d, the cells are equal steps of three numbers that no rotation of the cloud
changes (the point pair features of Drost et al., CVPR 2010, without the angle between the normals):

    |d| / radius        from 0 to 1
    n_i . d / |d|       from -1 to 1: height of j over the tangent plane of i
    n_j . -d / |d|      from -1 to 1: height of i over the tangent plane of j

Both heights are negative along a ridge and positive in a valley. Cell (shell, own, other) of t x t x t cells
has index k = (shell t + own) t + other; with j as the centre, own and other are exchanged.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcreg.kernels.cpu.neighbors import Pairs, Rows, from_both_ends, pairs_between, pairs_within

PAIRS_AT_ONCE = 1 << 17  # pairs whose cells are computed together, in arrays of a few MB

Normals = tuple[np.ndarray, np.ndarray]  # of the centres (N, 3) and of the points (P, 3), of their dtype


def neighbours(
    centres: np.ndarray,
    points: np.ndarray,
    centre_lengths: np.ndarray,
    lengths: np.ndarray,
    size: float,
    kernel_size: int,
    radius: float,
    normals: Normals | None,
    cube: bool,
) -> tuple[Rows, Rows, Rows]:
    """Find the triplets: i, j and k (T,), in no particular order."""
    if centres is points:
        pairs = pairs_within(points, lengths, radius, cube)
        own = None if normals is None else normals[0]
        return neighbours_within(pairs, len(points), size, kernel_size, radius, own)
    pairs = pairs_between(centres, points, centre_lengths, lengths, radius, cube)
    return pairs.i, pairs.j, _cells(pairs, size, kernel_size, radius, normals)


def neighbours_within(
    pairs: Pairs, count: int, size: float, kernel_size: int, radius: float, normals: np.ndarray | None
) -> tuple[Rows, Rows, Rows]:
    """i, j and k (T,) of `count` points among themselves, from their `pairs_within` the radius."""
    k, back = _cells_from_both_ends(pairs, size, kernel_size, radius, normals)
    middle = np.full(count, _middle(kernel_size, normals))
    return *from_both_ends(pairs, count), np.concatenate([k, back, middle])


def counts(
    pairs: Pairs, count: int, size: float, kernel_size: int, radius: float, normals: np.ndarray | None
) -> NDArray[np.int32]:
    """Count the neighbours (K, N) in each kernel cell of `count` points, from `pairs_within` the radius."""
    found = np.zeros((kernel_size**3, count), np.int32)
    found[_middle(kernel_size, normals)] = 1  # itself
    for start in range(0, len(pairs.i), PAIRS_AT_ONCE):
        some = Pairs(*(column[..., start : start + PAIRS_AT_ONCE] for column in pairs))
        k, back = _cells_from_both_ends(some, size, kernel_size, radius, normals)
        for cell, row in ((k, some.i), (back, some.j)):
            cell *= count
            cell += row
            np.add.at(found.reshape(-1), cell, np.int32(1))
    return found


def ppf_cells(
    offset: np.ndarray, own: np.ndarray, other: np.ndarray, radius: float, kernel_size: int
) -> np.ndarray:
    """Point-pair cells k (T,) int64 of offsets, normals of centres and normals of points, each (3, T).

    A height is 0 for a point at its centre, and over a tangent plane whose normal is missing (zeros).
    """
    dx, dy, dz = offset
    one = offset.dtype.type(1)
    distance = np.sqrt((dx * dx + dy * dy) + dz * dz)
    safe = np.where(distance > 0, distance, one)
    rise, fall = ((nx * dx + ny * dy) + nz * dz for nx, ny, nz in (own, other))
    shares = distance / offset.dtype.type(radius), (rise / safe + one) / 2, (-fall / safe + one) / 2
    shell, own, other = (
        np.clip(np.floor(share * kernel_size), 0, kernel_size - 1).astype(np.int64) for share in shares
    )
    return (shell * kernel_size + own) * kernel_size + other


def swap_height_axes(weight: Any) -> Any:
    """Point-pair weights (t^3, ...), array or tensor, with own and other height exchanged."""
    kernel_size = round(len(weight) ** (1 / 3))
    shape = kernel_size, kernel_size, kernel_size, *weight.shape[1:]
    return weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)


def _cells_from_both_ends(
    pairs: Pairs, size: float, kernel_size: int, radius: float, normals: np.ndarray | None
) -> tuple[Rows, Rows]:
    """Cells k (T,) of j around i, and of i around j, bit-equal to those of the opposite offsets."""
    k = _cells(pairs, size, kernel_size, radius, None if normals is None else (normals, normals))
    cells = np.arange(kernel_size**3)
    opposite = cells[::-1] if normals is None else swap_height_axes(cells)
    return k, opposite.take(k)


def _cells(pairs: Pairs, size: float, kernel_size: int, radius: float, normals: Normals | None) -> Rows:
    """Kernel cells k (T,) of j around i."""
    if normals is None:  # along the axes
        half = kernel_size // 2
        x, y, z = np.rint(pairs.offset / size).clip(-half, half) + half
        cells: Rows = ((x * kernel_size + y) * kernel_size + z).astype(np.int64)  # small integers are exact
        return cells
    own, other = (some.T.take(rows, 1) for some, rows in zip(normals, (pairs.i, pairs.j), strict=True))
    return ppf_cells(pairs.offset, own, other, radius, kernel_size)


def _middle(kernel_size: int, normals: np.ndarray | None) -> int:
    """The cell of a point in its own kernel: distance 0, and heights 0."""
    return kernel_size**3 // 2 if normals is None else kernel_size**2 // 2
