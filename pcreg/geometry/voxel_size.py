"""Voxel size that suits a cloud, from the spacing of its points alone.

Every other length of a registration is a multiple of the voxel size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, like, namespace, take, to_host
from pcreg.runtime.errors import InputError

MAX_CELLS = 15_000  # occupied cells: an RGB-D fragment at 2.5 to 3 cm, a LiDAR scan at 0.2 to 0.4 m
POINTS_PER_CELL = 2.5  # with 1.5, fragments of 20,000 points register slower and with less confidence
# Cells of half the size are four times as many on a surface, but only twice as many along beams of a LiDAR
GROWTH = 2.5
STEP = 1.1  # from a voxel size that does not cover surfaces to the next
MAX_GAP_EXTENTS = 1 / 80  # larger cells need not cover surfaces: far rings on the ground never do
MIN_EXTENT_METRES, MAX_EXTENT_METRES = 1e-30, 1e30  # within the range of float32
SAMPLE_POINTS = 200_000
MIDDLE = (0.05, 0.95)  # quantiles between which most of a cloud lies
BOX_POINTS = 20_000  # for the quantiles, which are then right to a hundredth
MIN_CROWDED_POINTS = 8  # in a cell; isolated points are detected at the scale where most points are crowded
WITHIN_BLOCK = 3 + (3 << 20) + (3 << 40)  # bits of a cell's number within its block of 4 x 4 x 4 cells
MIN_VOXELS, MAX_VOXELS = 10, 4000  # along the extent
DISTINCT = 1_000_000  # cells along the extent: points of one such cell count once
BISECTIONS = 12  # of the voxel sizes between MIN_VOXELS and MAX_VOXELS: to half a percent


def extent(points: Array) -> float:
    """Diagonal in metres of `middle_box`, on which outliers have no influence."""
    if len(points) == 0:
        return 0.0
    low, high = middle_box(points)
    return float(np.linalg.norm(high - low))


def middle_box(points: Array) -> np.ndarray:
    """Corners (2, 3), on the host, of the middle 90 % of each coordinate of points (N, 3), or of a sample."""
    return np.quantile(sampled(points), MIDDLE, axis=0)


def sampled(points: Array) -> np.ndarray:
    """Every n-th of points (N, 3), on the host: 20,000 to 40,000, or all of fewer."""
    return to_host(points[:: max(1, len(points) // BOX_POINTS)])


@dataclass(frozen=True)
class Sample:
    """Sample of up to 400,000 points of a cloud, without isolated points."""

    count: int  # of the cloud's points, or of 200,000 to 400,000 of them; repeated points count once
    kept: float  # fraction of the points that are within the middle of the cloud
    extent: float  # metres
    cell_counts: "CellCounts"  # of the points of the sample

    @staticmethod
    def of(points: Array, name: str) -> "Sample":
        """Take the sample of a cloud (N, 3); InputError, by its name, if it has no scale."""
        if len(points) == 0:
            raise InputError(f"{name}: holds no points with finite coordinates; check the file")
        xp, some = namespace(points), points[:: max(1, len(points) // SAMPLE_POINTS)]
        columns = xp.stack([some[:, axis] for axis in range(3)])
        low, high = xp.quantile(columns, like(MIDDLE, points), 1)
        size = to_host(high - low)
        if not size.any():
            raise InputError(f"{name}: holds no two different points, so it has no scale; check the file")
        if not MIN_EXTENT_METRES < size.max() < MAX_EXTENT_METRES:
            raise InputError(f"{name}: extends over {size.max():.2g} m; check the file and its unit")
        extent = float(np.linalg.norm(size))
        inside = ((columns >= low[:, None]) & (columns <= high[:, None])).all(0)
        rows = xp.nonzero(inside)[0]
        share = len(rows) / len(some)
        if share > 0:
            columns = take(columns, rows, 1)
        counts = CellCounts(xp.astype(columns - xp.min(columns, axis=1, keepdims=True), xp.float32))
        distinct = counts.occupied(extent / DISTINCT) / columns.shape[1] if share > 0 else 1.0
        return Sample(round(len(some) * distinct), share or 1.0, extent, counts.without_isolated(extent))

    def voxel(self) -> float:
        """Voxel size in metres, to two digits, with 15,000 cells, or 2.5 points per cell of a small cloud.

        It is larger if such cells would cover lines, not surfaces, as along the beams of a LiDAR.
        """
        cells = min(MAX_CELLS, self.count / POINTS_PER_CELL)
        found = self.cell_counts.smallest_voxel(self.extent, lambda voxel: self.occupied(voxel) <= cells)
        while not self._covers_surfaces(found):
            found *= STEP
        return float(f"{found:.2g}")

    def fills(self, voxel: float) -> bool:
        """True if cells of this size hold 2.5 points or more on average and cover surfaces.

        At most 200,000 points are counted.
        """
        enough = self.occupied(voxel) <= min(SAMPLE_POINTS, self.count) / POINTS_PER_CELL
        return enough and self._covers_surfaces(voxel)

    def _covers_surfaces(self, voxel: float) -> bool:
        """True if cells of this size cover surfaces rather than lines, or are so large that they need not."""
        is_large = voxel >= MAX_GAP_EXTENTS * self.extent
        return is_large or self.occupied(voxel) >= GROWTH * self.occupied(2 * voxel)

    def occupied(self, voxel: float) -> float:
        """Number of cells that the cloud fills, counting those beyond the middle 90 % in proportion."""
        return self.cell_counts.occupied(voxel) / self.kept


@dataclass(frozen=True)
class CellCounts:
    """Numbers of points in the cells of grids, by the size of a cell in metres."""

    columns: Array  # (3, S) float32, S > 0, the points in metres, each coordinate from 0 up

    def without_isolated(self, extent: float) -> "CellCounts":
        """Counts without isolated points, which would fill cells of their own.

        In cells so large that most points lie in cells with eight or more, an isolated point is alone in its
        cell, and no cell of its block has two points. The sparse far end of a LiDAR scan is denser. `extent`
        is that of the cloud in metres.
        """

        def most_are_crowded(voxel: float) -> bool:
            return 2 * self.crowded(voxel) >= self.columns.shape[1]

        voxel = self.smallest_voxel(extent, most_are_crowded)
        if voxel == extent / MIN_VOXELS and not most_are_crowded(voxel):  # too few points to decide
            return self
        xp = namespace(self.columns)
        kept = xp.nonzero(~self.is_isolated(voxel))[0]
        return CellCounts(take(self.columns, kept, 1))  # in C order, unlike columns[:, kept]

    def smallest_voxel(self, extent: float, fits: Callable[[float], bool]) -> float:
        """Smallest voxel size for the extent that `fits`, as larger ones do; else the largest, untested."""
        small, large = extent / MAX_VOXELS, extent / MIN_VOXELS
        for _ in range(BISECTIONS):
            middle = (small * large) ** 0.5
            small, large = (small, middle) if fits(middle) else (middle, large)
        return large

    def occupied(self, voxel: float) -> int:
        """Number of cells that hold points."""
        numbers = self._in_order(voxel)
        return 1 + int((numbers[1:] != numbers[:-1]).sum())

    def crowded(self, voxel: float) -> int:
        """Number of points in cells that hold eight or more."""
        numbers, others = self._in_order(voxel), MIN_CROWDED_POINTS - 1
        # Of n >= 8 points of a cell, in order, n - 7 have their seventh successor in it, and of these n - 8
        # are followed by another one: 8 (n - 7) - 7 (n - 8) = n
        full = numbers[others:] == numbers[:-others]
        return int(MIN_CROWDED_POINTS * full.sum() - others * (full[1:] & full[:-1]).sum())

    def is_isolated(self, voxel: float) -> Array:
        """True (S,) for points in blocks of 4 x 4 x 4 cells none of which holds two points."""
        xp = namespace(self.columns)
        cells, cell, counts = xp.unique(self._numbers(voxel), return_inverse=True, return_counts=True)
        blocks, block = xp.unique(cells & ~WITHIN_BLOCK, return_inverse=True)
        shared = xp.zeros_like(blocks, dtype=xp.bool)
        shared[block[counts > 1]] = True
        return ~shared[block][cell]

    def _in_order(self, voxel: float) -> Array:
        """Numbers (S,) of the points' cells, sorted: in threads this is faster than a table."""
        return namespace(self.columns).sort(self._numbers(voxel), stable=False)

    def _numbers(self, voxel: float) -> Array:
        """Number (S,) int64 of each point's cell, in blocks of bits by axis."""
        xp, cells_per_metre = namespace(self.columns), float(np.float32(1 / voxel))
        x, y, z = xp.astype(self.columns * cells_per_metre, xp.int64)
        return x + (y << 20) + (z << 40)
