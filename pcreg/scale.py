"""The voxel size that suits a pair of clouds, taken from how their points lie and from no unit of length.

Every other length of a registration is a multiple of it.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.errors import InputError

CELLS = 15_000  # occupied cells: an RGB-D fragment at 2.5 to 3 cm, a LiDAR scan at 0.2 to 0.4 m
POINTS_PER_CELL = 2.5  # with 1.5, fragments of 20,000 points register slower and with less confidence
SAMPLE = 200_000  # points looked at
HALVINGS = 12  # of the interval of sizes, whose ends differ by a factor of 400: to within half a percent


def voxels(source: np.ndarray, target: np.ndarray, names: tuple[str, str]) -> list[float]:
    """Voxel sizes in metres to try for source (N, 3) and target (M, 3), the most promising first.

    The larger of the two clouds' own sizes, twice that, and half of it unless the points of one lie
    too far apart for that: unless such cells hold fewer than 2.5 of its points on average. Raises
    InputError, by its name, for a cloud that has no scale.
    """
    samples = [Sample.of(points, name) for points, name in zip((source, target), names, strict=True)]
    first = max(
        sample.voxel(_cells(points)) for sample, points in zip(samples, (source, target), strict=True)
    )
    finer = all(
        sample.occupied(first / 2) <= min(SAMPLE, len(points)) / POINTS_PER_CELL
        for sample, points in zip(samples, (source, target), strict=True)
    )
    return [first, 2 * first, *([first / 2] if finer else [])]


def voxel_of(points: np.ndarray, name: str) -> float:
    """The voxel size at which the cloud (N, 3) fills about 15,000 cells, to two digits.

    Of a small cloud it fills fewer, so that a cell holds 2.5 points on average.
    """
    return Sample.of(points, name).voxel(_cells(points))


def _cells(points: np.ndarray) -> float:
    return min(CELLS, len(points) / POINTS_PER_CELL)


def extent(points: np.ndarray) -> float:
    """The diagonal of the box that holds the middle 90 % of each coordinate: stray points do not count."""
    if len(points) == 0:
        return 0.0
    low, high = _middle(points)
    return float(np.linalg.norm(high - low))


def _middle(points: np.ndarray) -> np.ndarray:
    """The corners (2, 3) of the box that holds the middle 90 % of each coordinate."""
    return np.quantile(points, [0.05, 0.95], axis=0)


@dataclass(frozen=True)
class Sample:
    """About 200,000 points of a cloud, without strays: those would fill cells of their own."""

    points: np.ndarray  # (3, S) float32, from zero on
    kept: float  # fraction of the points that are no strays
    extent: float  # metres

    @staticmethod
    def of(points: np.ndarray, name: str) -> "Sample":
        """The sample of the cloud (N, 3); InputError, by its name, if it has no scale."""
        points = points[:: max(1, len(points) // SAMPLE)]
        low, high = _middle(points) if len(points) else np.zeros((2, 3))
        if (low == high).all():
            raise InputError(f"{name}: holds no two points apart, so it has no scale; check the file")
        kept = points[((points >= low) & (points <= high)).all(1)]
        if len(kept) == 0:
            kept = points
        columns = np.ascontiguousarray((kept - kept.min(0)).T, dtype=np.float32)
        return Sample(columns, len(kept) / len(points), float(np.linalg.norm(high - low)))

    def voxel(self, cells: float) -> float:
        """The voxel size, to two digits, at which the cloud fills so many cells."""
        small, large = self.extent / 4000, self.extent / 10
        for _ in range(HALVINGS):
            middle = (small * large) ** 0.5
            if self.occupied(middle) > cells:
                small = middle
            else:
                large = middle
        return float(f"{large:.2g}")

    def occupied(self, voxel: float) -> float:
        """How many cells the cloud fills, its strays taken for as many as their number."""
        x, y, z = (self.points * np.float32(1 / voxel)).astype(np.int32).astype(np.int64)
        key = np.sort(x + (y << 20) + (z << 40))
        return (np.count_nonzero(key[1:] != key[:-1]) + 1) / self.kept
