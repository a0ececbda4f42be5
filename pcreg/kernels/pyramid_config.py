"""Settings and coordinates of pyramids, without PyTorch."""

import math
from dataclasses import dataclass
from typing import Any

KERNEL_SIZE = 3  # kernels of every layer but the first
KERNELS = ("grid", "ppf")
NORMAL_RADIUS = 3.0  # voxels
RESOLUTION = 2**-20  # metres


@dataclass(frozen=True)
class PyramidConfig:
    """Levels and neighbourhoods of a network. Level l has cells of voxel * 2^l metres."""

    voxel: float = 0.025  # metres, edge of the cells with one point each
    n_levels: int = 4
    stem_kernel_size: int = 5  # kernel cells per axis of the first convolution, odd
    radius_scale: float = 1.0  # search radius as a multiple of `default_radius`
    snap: bool = False  # points move to voxel centres: a sparse voxel convolution
    kernel: str = "grid"  # cells along the axes; or "ppf": rotation-invariant cells of point-pair features

    @property
    def normal_radius(self) -> float:
        """The radius in metres of the neighbourhoods of normals."""
        return NORMAL_RADIUS * self.voxel

    def size_and_radius(self, level: int, kernel_size: int = KERNEL_SIZE) -> tuple[float, float]:
        """Return the edge of the kernel cells and the search radius of a convolution at `level`.

        Both are in metres; with `snap` both are in voxels, and the radius is half the edge of a cube.
        """
        if self.snap:
            return 2.0**level, kernel_size / 2 * 2**level
        size = self.voxel * 2**level
        return size, self.radius_scale * default_radius(size, kernel_size)


def default_radius(size: float, kernel_size: int) -> float:
    """The radius in metres of the ball with the volume of kernel_size^3 cells of edge `size`."""
    return float(size * kernel_size * (3 / (4 * math.pi)) ** (1 / 3))


def rounded(coordinates: Any) -> Any:
    """Round coordinates in metres, an array or a tensor, to 2^-20 m.

    The rounding errors of a cloud's motion must not decide in which cell a point lies.
    """
    return (coordinates / RESOLUTION).round() * RESOLUTION
