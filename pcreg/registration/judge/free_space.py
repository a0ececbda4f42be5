"""Free space: a sensor that saw a surface saw nothing in front of it.

Under a wrong motion the floors and walls of two scans may fit, but then furniture of one scan stands where
the sensor of the other scan looked straight through.
"""

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from scipy.ndimage import label

from pcreg.arrays import Array, every_nth, like, namespace, scatter_min, to_host
from pcreg.geometry.se3 import inverse, lengths, moved_by_each, transform
from pcreg.registration.judge.overlap import Overlap

MAX_VIEWS = 8  # of a cloud: those with most points
CELL_RADIANS = float(np.radians(2.0))  # of the range image; near surfaces have a point in every cell
ROWS, COLUMNS = 92, 180  # 180 x 360 degrees, and for rounding a row more at either pole
# A view is sparse if more than MIN_SPARSE of its far cells have GAP_CELLS or more empty neighbours
MIN_SPARSE, GAP_CELLS = 0.8, 3
MIN_FILLED = 0.5  # of the points in a cell of a surface that faces the sensor; a cell with fewer has gaps
UNSEEN = -1.0  # metres, of a cell in whose direction nothing was seen
MAX_QUERY_POINTS = 1_200  # of a scan, compared with the view of another
ORIGIN = np.zeros(3)

_any = partial(reduce, or_)  # of masks


class Ranges(NamedTuple):
    """Points (...) compared with a range image."""

    cells: Array  # (...) int64, of the range image
    distance: Array  # (...) metres, from the sensor to the points
    seen: Array  # (...) metres to what the sensor saw in these cells, or UNSEEN
    nearest: Array  # (...) metres or UNSEEN, as RangeImage.nearest
    gaps: Array  # (...) bool, as RangeImage.gaps

    @property
    def covered(self) -> Array:
        """True (...) where the sensor saw something in the direction of the point."""
        return self.seen > UNSEEN

    def in_front(self, margin: float) -> Array:
        """True (...) for points nearer than what was seen by more than `margin` metres."""
        return self.distance < self.seen - margin

    def well_in_front(self, margin: float) -> Array:
        """True (...) for points as far in front of what was seen in the cells around: not at its borders."""
        return self.distance < self.nearest - margin

    def displaced(self, margin: float) -> Array:
        """True (...) for points not behind what was seen; where it has gaps, for those well in front.

        In a gap a point may belong to the surface around it.
        """
        not_behind = self.distance < self.seen + margin
        clearly = namespace(self.distance).where(self.gaps, self.well_in_front(margin), not_behind)
        return self.covered & clearly


class RangeImage(NamedTuple):
    """Range image of a sensor: the nearest point in each direction."""

    origin: np.ndarray  # (3,) metres, where the sensor stood
    image: Array  # (ROWS * COLUMNS,) metres, or UNSEEN, by cells
    nearest: Array  # (ROWS * COLUMNS,) the least within one cell, of a sparse view within three, or UNSEEN
    gaps: Array  # (ROWS * COLUMNS,) bool: cells with few points, and all of a sparse view

    @staticmethod
    def of(scan: Array, origin: np.ndarray = ORIGIN, spacing: float = 0.0) -> "RangeImage":
        """The range image of a scan (N, 3), N > 0, seen from `origin`: in each cell the nearest point counts.

        Points are `spacing` metres apart. A view is sparse if most of its cells have empty ones around them,
        as that of a LiDAR with few beams: between two beams the ground may be nearer than at either. Cells so
        near that the spacing alone leaves gaps do not count.
        """
        xp = namespace(scan)
        cells, distance = _cells(scan - like(origin, scan))
        image = scatter_min(distance, cells, ROWS * COLUMNS)
        near = xp.reshape(image, (ROWS, COLUMNS))
        of_nine = xp.astype(near < np.inf, xp.int64)
        far = (near < np.inf) & (near > spacing / CELL_RADIANS)
        for axis in (0, 1):
            of_nine = of_nine + xp.roll(of_nine, 1, axis=axis) + xp.roll(of_nine, -1, axis=axis)
        few = far & (of_nine <= 9 - GAP_CELLS)
        sparse = xp.count_nonzero(few) > MIN_SPARSE * xp.count_nonzero(far)
        near = _least_around(near)
        near = xp.where(sparse, _least_around(_least_around(near)), near)
        nearest = xp.reshape(near, (-1,))
        seen = (xp.where(each < np.inf, each, UNSEEN) for each in (image, nearest))
        counts = xp.bincount(cells, minlength=ROWS * COLUMNS)
        few = counts * spacing**2 < MIN_FILLED * (image * CELL_RADIANS) ** 2
        return RangeImage(origin, *seen, few | sparse)

    def ranges(self, points: Array) -> Ranges:
        """Compare points (..., 3) with what was seen in their directions."""
        cells, distance = _cells(points - like(self.origin, points))
        return Ranges(cells, distance, self.image[cells], self.nearest[cells], self.gaps[cells])


def views_of(scan: Array, viewpoint: Array, margin: float) -> list[RangeImage]:
    """The range images of a scan (N, 3), N > 0: one from a `viewpoint` (3,), or several from (N, 3).

    Viewpoints within a cell of `margin` metres share a view, for which the margin of the comparison allows.
    Of more than eight views those with most points are kept: the others contradict nothing. Points are half
    of `margin` apart.
    """
    viewpoint, spacing = to_host(viewpoint), margin / 2
    if viewpoint.ndim == 1:
        return [RangeImage.of(scan, viewpoint, spacing)]
    _, place, counts = np.unique(
        np.floor(viewpoint / margin), axis=0, return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:MAX_VIEWS]
    masks = [place.ravel() == which for which in most]
    return [RangeImage.of(scan[like(mask, scan)], viewpoint[mask].mean(0), spacing) for mask in masks]


def free_space_violation(points: Array, views: Sequence[RangeImage], margin: float) -> float:
    """Fraction of points (N, 3) in front of the surface, among those that views cover; 0 if none are."""
    in_front, covered = _violating_and_covered([view.ranges(points) for view in views], margin)
    return float(in_front / max(covered, 1))


class Sight(NamedTuple):
    """Numbers of points of one cloud, by what the other cloud's sensor saw there.

    Points that touch the other cloud confirm the motion; others contradict it, or do neither.
    """

    in_front: float  # by the margin or more, whether they touch or not; over all views
    covered: float  # in directions where anything was seen; over all views
    confirmed: float  # covered, and touch
    curved_confirmed: float  # covered, and touch; each counts by its weight
    curved_against: float  # do not touch, and are displaced by half of the margin; each by its weight
    against: float  # do not touch, and are well in front by half of the margin: the largest connected part


class FreeSpace:
    """Mutual free space of two scans, by motion."""

    def __init__(
        self, source: Array, target: Array, margin: float, viewpoints: tuple[Array, Array] = (ORIGIN, ORIGIN)
    ) -> None:
        """Surfaces source (N, 3) and target (M, 3), N, M > 0, seen from their `viewpoints`.

        These are (3,) or a row for each point. Points further than `margin` metres in front of a surface are
        not part of it.
        """
        self.scans, self.margin = (source, target), margin
        self._some = [every_nth(scan, MAX_QUERY_POINTS) for scan in self.scans]
        sides = zip(self.scans, viewpoints, strict=True)
        self._views = [views_of(scan, viewpoint, margin / 2) for scan, viewpoint in sides]

    def __call__(self, motions: np.ndarray) -> np.ndarray:
        """Fraction (H,) of sampled points in the free space of the other scan, mean of both ways."""
        ways = motions, np.array([inverse(T) for T in motions])
        shares = []
        for points, way, views in zip(self._some, ways, self._views[::-1], strict=True):
            moved, xp = moved_by_each(way, points), namespace(points)
            in_front = _any([view.ranges(moved).in_front(self.margin) for view in views])
            shares.append(xp.count_nonzero(in_front, axis=1) / len(points))
        return to_host(shares[0] + shares[1]) / 2

    def sights(
        self, T_target_source: np.ndarray, overlap: Overlap, weights: tuple[Array, Array]
    ) -> tuple[Sight, Sight]:
        """The source seen by the sensor of the target, and the reverse, under a motion with this overlap.

        `weights` of the points of either cloud, 0 to 1, say how curved its surface is there.
        """
        moved = overlap.moved, transform(inverse(T_target_source), self.scans[1])
        touching = overlap.source.touching, overlap.target.touching
        ways = zip(moved, self._views[::-1], touching, weights, strict=True)
        source, target = (self._sight(*way) for way in ways)
        return source, target

    def _sight(self, points: Array, views: Sequence[RangeImage], touching: Array, weights: Array) -> Sight:
        ranges, half, xp = [view.ranges(points) for view in views], self.margin / 2, namespace(points)
        confirmed = _any([each.covered for each in ranges]) & touching
        against = _any([each.well_in_front(half) for each in ranges]) & ~touching
        displaced = _any([each.displaced(half) for each in ranges]) & ~touching
        in_front, covered = _violating_and_covered(ranges, self.margin)
        pieces = [_largest_piece(to_host(each.cells[against & each.covered])) for each in ranges]
        curved = (xp.sum(xp.where(mask, weights, 0.0)) for mask in (confirmed, displaced))
        sums = in_front, covered, xp.count_nonzero(confirmed), *curved
        counts = to_host(xp.stack([xp.asarray(each, dtype=xp.float64) for each in sums])).tolist()
        return Sight(*counts, against=max(pieces))


def _least_around(image: Array) -> Array:
    """The minimum over each cell of an image (rows, columns) and the eight around it."""
    xp = namespace(image)
    for axis in (0, 1):
        image = xp.minimum(image, xp.minimum(xp.roll(image, 1, axis=axis), xp.roll(image, -1, axis=axis)))
    return image


def _largest_piece(cells: np.ndarray) -> float:
    """Number of points, by their cells (N,), in the largest connected part of the image; 0 without any."""
    if len(cells) == 0:
        return 0.0
    counts = np.bincount(cells, minlength=ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    # The last column meets the first one: begin at an empty column, if there is one, to cut no piece in two
    counts = np.roll(counts, -counts.any(0).argmin(), axis=1)
    parts, _ = label(counts > 0, structure=np.ones((3, 3)))
    return float(np.bincount(parts.ravel(), counts.ravel())[1:].max())


def _violating_and_covered(ranges: Sequence[Ranges], margin: float) -> tuple[Array, Array]:
    """Numbers of points in front of what was seen, and in directions that were, over all views."""
    xp = namespace(ranges[0].distance)
    in_front = sum(xp.count_nonzero(each.in_front(margin)) for each in ranges)
    return in_front, sum(xp.count_nonzero(each.covered) for each in ranges)


def _cells(points: Array) -> tuple[Array, Array]:
    """The cell (...) int64 of the range image and the range (...) of points (..., 3)."""
    xp, distance = namespace(points), lengths(points)
    azimuth = xp.atan2(points[..., 1], points[..., 0])
    elevation = xp.asin(points[..., 2] / xp.maximum(distance, 1e-9))
    row, column = (xp.astype(xp.floor(angle / CELL_RADIANS), xp.int64) for angle in (elevation, azimuth))
    return (row + ROWS // 2) * COLUMNS + (column + COLUMNS // 2) % COLUMNS, distance
