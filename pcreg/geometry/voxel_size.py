"""The voxel size that suits a pair of clouds, taken from how their points lie and from no unit of length.

Every other length of a registration is a multiple of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pcreg.runtime.errors import InputError

CELLS = 15_000  # occupied cells: an RGB-D fragment at 2.5 to 3 cm, a LiDAR scan at 0.2 to 0.4 m
POINTS_PER_CELL = 2.5  # with 1.5, fragments of 20,000 points register slower and with less confidence
SHORTEST, LONGEST = 1e-30, 1e30  # metres that float32 can count
SAMPLE = 200_000  # points looked at
CROWD = 8  # points in a cell, where most points are to have so many around them to tell isolated points by
BLOCK = 2  # bits of a cell's numbers: cells are taken together four by four by four
HALVINGS = 12  # of the interval of sizes, whose ends differ by a factor of 400: to within half a percent


def further_voxels(first: float, source: "Sample", target: "Sample") -> list[float]:
    """The voxel sizes in metres to try if `first`, the larger of the two clouds' own, does not do.

    Twice that, and half of it unless the points of one cloud lie too far apart for that: unless such cells
    hold fewer than 2.5 of its points on average.
    """
    return [2 * first, *([first / 2] if source.fills(first / 2) and target.fills(first / 2) else [])]


def extent(points: np.ndarray) -> float:
    """The diagonal of the box that holds the middle 90 % of each coordinate: stray points do not count."""
    if len(points) == 0:
        return 0.0
    low, high = middle_box(points)
    return float(np.linalg.norm(high - low))


def middle_box(points: np.ndarray) -> np.ndarray:
    """The corners (2, 3) of the box that holds the middle 90 % of each coordinate; of many, of a sample."""
    return np.quantile(points[:: max(1, len(points) // SAMPLE)], [0.05, 0.95], axis=0)


@dataclass(frozen=True)
class Sample:
    """About 200,000 points of a cloud, without strays and outliers: those would fill cells of their own."""

    points: np.ndarray  # (3, S) float32, from zero on
    count: int  # of the cloud's points
    kept: float  # fraction of the points that are within the middle of the cloud
    extent: float  # metres

    @staticmethod
    def of(points: np.ndarray, name: str) -> "Sample":
        """The sample of the cloud (N, 3); InputError, by its name, if it has no scale."""
        count = len(points)
        points = points[:: max(1, count // SAMPLE)]
        low, high = middle_box(points) if len(points) else np.zeros((2, 3))
        if (low == high).all():
            raise InputError(f"{name}: holds no two points apart, so it has no scale; check the file")
        if not SHORTEST < (high - low).max() < LONGEST:
            raise InputError(f"{name}: extends over {(high - low).max():.2g} m; check the file and its unit")
        kept = points[((points >= low) & (points <= high)).all(1)]
        if len(kept) == 0:
            kept = points
        columns = np.ascontiguousarray((kept - kept.min(0)).T, dtype=np.float32)
        extent = float(np.linalg.norm(high - low))
        return Sample(columns[:, ~_alone(columns, extent)], count, len(kept) / len(points), extent)

    def voxel(self) -> float:
        """The voxel size in metres at which the cloud fills about 15,000 cells, to two digits.

        Of a small cloud it fills fewer, so that a cell holds 2.5 points on average.
        """
        cells = min(CELLS, self.count / POINTS_PER_CELL)
        return float(f"{_smallest(self.extent, lambda voxel: self.occupied(voxel) <= cells):.2g}")

    def fills(self, voxel: float) -> bool:
        """Whether cells of this size hold 2.5 points or more on average."""
        return self.occupied(voxel) <= min(SAMPLE, self.count) / POINTS_PER_CELL

    def occupied(self, voxel: float) -> float:
        """How many cells the cloud fills, its strays taken for as many as their number."""
        key = np.sort(_keys(self.points, voxel))
        return (np.count_nonzero(key[1:] != key[:-1]) + 1) / self.kept


def _keys(columns: np.ndarray, voxel: float) -> np.ndarray:
    """A number (S,) int64 for the cell of each point, the points being (3, S) float32 from zero on."""
    x, y, z = (columns * np.float32(1 / voxel)).astype(np.int32).astype(np.int64)
    return x + (y << 20) + (z << 40)


def _smallest(extent: float, fits: Callable[[float], bool]) -> float:
    """The smallest voxel size that fits, where all larger ones do, of a cloud of that extent."""
    small, large = extent / 4000, extent / 10
    for _ in range(HALVINGS):
        middle = (small * large) ** 0.5
        if fits(middle):
            large = middle
        else:
            small = middle
    return large


def _alone(columns: np.ndarray, extent: float) -> np.ndarray:
    """Which points (S,) of (3, S) float32 are outliers, each of which would fill a cell of its own.

    In cells so large that most points have a crowd around them, an outlier is alone and has cells around
    it that are empty or hold one point as well. The thin far end of a LiDAR scan is not alone like that.
    """

    def crowded(voxel: float) -> bool:
        _, counts = np.unique(_keys(columns, voxel), return_counts=True)
        return 2 * counts[counts >= CROWD].sum() >= columns.shape[1]

    voxel = _smallest(extent, crowded)
    if not crowded(voxel):  # too few points to tell
        return np.zeros(columns.shape[1], dtype=bool)
    keys = _keys(columns, voxel)
    cells, cell, counts = np.unique(keys, return_inverse=True, return_counts=True)
    within = (1 << BLOCK) - 1
    blocks, block = np.unique(cells & ~(within + (within << 20) + (within << 40)), return_inverse=True)
    shared = np.zeros(len(blocks), dtype=bool)
    shared[block[counts > 1]] = True
    return ~shared[block][cell]
