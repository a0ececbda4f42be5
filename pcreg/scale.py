"""The voxel size that suits a pair of clouds, taken from how their points lie and from no unit of length.

Every other length of a registration is a multiple of it.
"""

import numpy as np

from pcreg.errors import InputError

CELLS = 15_000  # occupied cells: an RGB-D fragment at 2.5 to 3 cm, a LiDAR scan at 0.2 to 0.4 m
POINTS_PER_CELL = 2.5  # with 1.5, fragments of 20,000 points register slower and with less confidence
SAMPLE = 200_000  # points looked at
HALVINGS = 12  # of the interval of sizes, whose ends differ by a factor of 400: to within half a percent


def voxels(source: np.ndarray, target: np.ndarray, names: tuple[str, str]) -> list[float]:
    """Voxel sizes in metres to try for source (N, 3) and target (M, 3), the most promising first.

    The larger of the two clouds' own sizes, twice that, and half of it unless the points of one lie
    too far apart for that. Raises InputError, by its name, for a cloud that has no scale.
    """
    sizes = [voxel_of(points, name) for points, name in zip((source, target), names, strict=True)]
    first = max(sizes)
    finest = max(spacing(points, name) for points, name in zip((source, target), names, strict=True))
    return [first, 2 * first, *([first / 2] if first / 2 >= finest else [])]


def voxel_of(points: np.ndarray, name: str) -> float:
    """The voxel size at which the cloud (N, 3) fills about 15,000 cells, to two digits.

    Of a small cloud it fills fewer, so that a cell holds 2.5 points on average.
    """
    return _filling(points, min(CELLS, len(points) / POINTS_PER_CELL), name)


def spacing(points: np.ndarray, name: str) -> float:
    """The voxel size whose cells hold 2.5 points of the cloud (N, 3) on average, or of 200,000 of them."""
    return _filling(points, min(SAMPLE, len(points)) / POINTS_PER_CELL, name)


def extent(points: np.ndarray) -> float:
    """The diagonal of the box that holds the middle 90 % of each coordinate: stray points do not count."""
    if len(points) == 0:
        return 0.0
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    return float(np.linalg.norm(high - low))


def _filling(points: np.ndarray, cells: float, name: str) -> float:
    """The voxel size at which the cloud fills so many cells."""
    points = points[:: max(1, len(points) // SAMPLE)]
    size = extent(points)
    if size == 0:
        raise InputError(f"{name}: holds no two points apart, so it has no scale; check the file")
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    kept = points[
        ((points >= low) & (points <= high)).all(1)
    ]  # without strays, which fill cells of their own
    if len(kept) == 0:
        kept = points
    cells = cells * len(kept) / len(points)
    kept = kept - kept.min(0)
    small, large = size / 4000, size / 10
    for _ in range(HALVINGS):
        middle = (small * large) ** 0.5
        if _occupied(kept, middle) > cells:
            small = middle
        else:
            large = middle
    return float(f"{large:.2g}")


def _occupied(points: np.ndarray, voxel: float) -> int:
    """How many cells hold one of the points (N, 3), whose coordinates are not negative."""
    cell = np.floor(points / voxel).astype(np.int64)
    return len(np.unique(cell[:, 0] + (cell[:, 1] << 20) + (cell[:, 2] << 40)))
