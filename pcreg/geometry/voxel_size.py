"""The voxel size that suits a pair of clouds, taken from how their points lie and from no unit of length.

Every other length of a registration is a multiple of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pcreg.runtime.errors import InputError

MAX_CELLS = 15_000  # occupied cells: an RGB-D fragment at 2.5 to 3 cm, a LiDAR scan at 0.2 to 0.4 m
POINTS_PER_CELL = 2.5  # with 1.5, fragments of 20,000 points register slower and with less confidence
MIN_EXTENT_METRES, MAX_EXTENT_METRES = 1e-30, 1e30  # that float32 can count
SAMPLE_POINTS = 200_000
MIDDLE = (0.05, 0.95)  # quantiles between which most of a cloud lies
BOX_POINTS = 20_000  # that tell where these are, to within a hundredth
MIN_CROWDED_POINTS = 8  # in a cell; isolated points are detected at the scale where most cells have as many
WITHIN_BLOCK = 3 + (3 << 20) + (3 << 40)  # of a cell's number: cells are taken together four by four by four
MIN_VOXELS, MAX_VOXELS = 10, 4000  # along the extent
BISECTIONS = 12  # of the interval of sizes between these: to within half a percent


def further_voxels(first: float, source: "Sample", target: "Sample") -> list[float]:
    """The voxel sizes in metres to try if `first`, the larger of the two clouds' own, does not do.

    Twice that, and half of it unless one cloud is too sparse: unless such cells have fewer than 2.5 of its
    points on average.
    """
    return [2 * first, *([first / 2] if source.fills(first / 2) and target.fills(first / 2) else [])]


def extent(points: np.ndarray) -> float:
    """The diagonal in metres of `middle_box`, on which outliers have no influence."""
    if len(points) == 0:
        return 0.0
    low, high = middle_box(points)
    return float(np.linalg.norm(high - low))


def middle_box(points: np.ndarray) -> np.ndarray:
    """The corners (2, 3) of the middle 90 % of each coordinate of points (N, 3); of many, of a sample."""
    return np.quantile(points[:: max(1, len(points) // BOX_POINTS)], MIDDLE, axis=0)


@dataclass(frozen=True)
class Sample:
    """About 200,000 points of a cloud without isolated points, which would fill cells of their own."""

    count: int  # of the cloud's points
    kept: float  # fraction of the points that are within the middle of the cloud
    extent: float  # metres
    cell_counts: "CellCounts"  # of the points of the sample

    @staticmethod
    def of(points: np.ndarray, name: str) -> "Sample":
        """The sample of the cloud (N, 3); InputError, by its name, if it has no scale."""
        columns = np.ascontiguousarray(points[:: step_of(points)].T)
        low, high = np.quantile(columns, MIDDLE, axis=1) if len(points) else np.zeros((2, 3))
        extent = extent_between(low, high, name)
        in_the_middle = np.logical_and.reduce(
            [(row >= least) & (row <= most) for row, least, most in zip(columns, low, high, strict=True)]
        )
        share = float(in_the_middle.mean())
        if share > 0:
            columns = columns.compress(in_the_middle, axis=1)
        counts = CellCounts((columns - columns.min(1, keepdims=True)).astype(np.float32))
        return Sample(len(points), share or 1.0, extent, counts.without_isolated(extent))

    def voxel(self) -> float:
        """The voxel size in metres at which the cloud fills about 15,000 cells, to two digits.

        Of a small cloud it fills fewer, so that a cell has 2.5 points on average.
        """
        cells = min(MAX_CELLS, self.count / POINTS_PER_CELL)
        found = self.cell_counts.smallest_voxel(self.extent, lambda voxel: self.occupied(voxel) <= cells)
        return float(f"{found:.2g}")

    def fills(self, voxel: float) -> bool:
        """Whether cells of this size have 2.5 points or more on average."""
        return self.occupied(voxel) <= min(SAMPLE_POINTS, self.count) / POINTS_PER_CELL

    def occupied(self, voxel: float) -> float:
        """How many cells the cloud fills, counting those beyond the middle 90 % in proportion."""
        return self.cell_counts.occupied(voxel) / self.kept


SampleOf: TypeAlias = Callable[[np.ndarray, str], Sample]  # of a cloud (N, 3) and its name


def step_of(points: np.ndarray) -> int:
    """Every how many-th point of a cloud (N, 3) its sample takes."""
    return max(1, len(points) // SAMPLE_POINTS)


def extent_between(low: np.ndarray, high: np.ndarray, name: str) -> float:
    """The extent in metres of the middle of a cloud, by its corners (3,); InputError if it tells no scale."""
    if (low == high).all():
        raise InputError(f"{name}: holds no two different points, so it has no scale; check the file")
    if not MIN_EXTENT_METRES < (high - low).max() < MAX_EXTENT_METRES:
        raise InputError(f"{name}: extends over {(high - low).max():.2g} m; check the file and its unit")
    return float(np.linalg.norm(high - low))


class CellCounts:
    """How many points each occupied cell has, for one cell size after another."""

    def __init__(self, columns: np.ndarray) -> None:
        """Of points (3, S) float32 from zero on."""
        self.columns, self.highest = columns, columns.max(1, initial=0)

    def without_isolated(self, extent: float) -> "CellCounts":
        """Those without the isolated points of a cloud of that extent, which would fill cells of their own.

        In cells so large that most of them have eight points, an isolated one is the only point of its cell,
        and the cells of its block have one point at most. That is not so in the sparse far end of a LiDAR
        scan.
        """

        def crowded(voxel: float) -> bool:
            return 2 * self.crowded(voxel) >= self.columns.shape[1]

        voxel = self.smallest_voxel(extent, crowded)
        if voxel == extent / MIN_VOXELS and not crowded(voxel):  # too few points to decide
            return self
        return self.of_points(~self.is_isolated(voxel))

    def of_points(self, kept: np.ndarray) -> "CellCounts":
        """Those of the points in the mask (S,)."""
        return CellCounts(self.columns.compress(kept, axis=1))  # in C order, unlike columns[:, kept]

    def smallest_voxel(self, extent: float, fits: Callable[[float], bool]) -> float:
        """The smallest voxel size that fits, where all larger ones do, of a cloud of that extent.

        Or the largest one that comes into question, which is not tried.
        """
        small, large = extent / MAX_VOXELS, extent / MIN_VOXELS
        for _ in range(BISECTIONS):
            self.look_ahead(small, large)
            middle = middle_of(small, large)
            if fits(middle):
                large = middle
            else:
                small = middle
        return large

    def look_ahead(self, small: float, large: float) -> None:
        """Count for the sizes that a bisection between these will ask for, if that saves time."""

    def occupied(self, voxel: float) -> int:
        """How many cells of `voxel` metres hold points."""
        return len(self.counts(voxel))

    def crowded(self, voxel: float) -> int:
        """How many points are in cells that hold eight or more."""
        counts = self.counts(voxel)
        return int(counts[counts >= MIN_CROWDED_POINTS].sum())

    def is_isolated(self, voxel: float) -> np.ndarray:
        """Which points are alone in their cell, as is any other in each cell of their block: (S,) bool.

        A block has four cells along each axis.
        """
        keys = _keys(self.columns, voxel)
        cells, cell, counts = np.unique(keys, return_inverse=True, return_counts=True)
        blocks, block = np.unique(cells & ~WITHIN_BLOCK, return_inverse=True)
        shared = np.zeros(len(blocks), dtype=bool)
        shared[block[counts > 1]] = True
        return ~shared[block][cell]

    def counts(self, voxel: float) -> np.ndarray:
        """Of the occupied cells, in no particular order.

        By sorting: two threads that each fill a table of all cells wait for one another's memory.
        """
        return np.unique(self._numbers(voxel), return_counts=True)[1]

    def _numbers(self, voxel: float) -> np.ndarray:
        """A number (S,) for the cell of each point, in 32 bits if these do: they are sorted twice as fast."""
        scale = np.float32(1 / voxel)
        _, ny, nz = shape = (self.highest * scale).astype(np.int64) + 1
        if shape.prod() > np.iinfo(np.int32).max:
            return _keys(self.columns, voxel)
        x, y, z = (self.columns * scale).astype(np.int32)
        return (x * np.int32(ny) + y) * np.int32(nz) + z


def _keys(columns: np.ndarray, voxel: float) -> np.ndarray:
    """A number (S,) int64 for the cell of each point, the points being (3, S) float32 from zero on."""
    x, y, z = (columns * np.float32(1 / voxel)).astype(np.int32).astype(np.int64)
    return x + (y << 20) + (z << 40)


def middle_of(small: float, large: float) -> float:
    """The size at which a bisection looks between two, in metres as they are."""
    return (small * large) ** 0.5
