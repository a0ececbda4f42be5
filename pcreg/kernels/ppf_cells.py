"""Rotation-invariant kernel cells, of point-pair features: distance and heights instead of axes.

Centre i with normal n_i sees point j with normal n_j at the offset d. Three numbers describe the pair, and no
rotation of the cloud changes them (the point pair features of Drost et al., CVPR 2010, but for the angle
between the normals):

    |d| / radius        from 0 to 1
    n_i . d / |d|       from -1 to 1: how high j stands over the tangent plane of i
    n_j . -d / |d|      from -1 to 1: how high i stands over the tangent plane of j

Along a ridge both heights are negative, in a valley positive. The kernel is a t x t x t grid over them,
so it has as many cells as one along the axes, and its convolutions give the same features for a rotated
cloud. Cell (shell, own, other) has index k = (shell t + own) t + other; seen from j the last two
change places.
"""

from typing import Any

import numpy as np


def ppf_cells(
    offset: np.ndarray, own: np.ndarray, other: np.ndarray, radius: float, kernel_size: int
) -> np.ndarray:
    """k (T,) int64 of offsets (3, T), the centre's normals (3, T) and the points' (3, T), of one dtype.

    A point on its centre, and one without a normal (zeros), is level.
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
    """Weights (t^3, ...), array or tensor, as the other end of each pair sees them.

    Own and other height change places.
    """
    kernel_size = round(len(weight) ** (1 / 3))
    shape = kernel_size, kernel_size, kernel_size, *weight.shape[1:]
    return weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)
