"""The viewpoint of a cloud, where its sensor stood, estimated from the cloud alone.

Normals point to the viewpoint, and free space lies between it and the surfaces. Many clouds have an origin
that is no sensor: those in an odometry, floor or survey frame, merged maps, cut-outs. So the origin is no
evidence. The estimate is the place from which the cloud looks most like a view, wherever its origin lies.
Unless the spacing of a spinning sensor's points proves it, free space and the sides of surfaces then have
less weight in the confidence (pcreg/registration/judge/confidence.py).

Three cues distinguish the place from which a cloud was seen:

- spacing: the distance of neighbouring points of a spinning sensor is proportional to their range;
- occlusion: no point lies behind a surface that was seen;
- incidence: surfaces that are seen edge-on have few points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pcreg.geometry.nearest import tree_for_few
from pcreg.geometry.se3 import dot
from pcreg.geometry.subsample import every_nth

MAX_SPACING_QUERIES = 2_000  # points whose neighbours are searched
MAX_SPACING_POINTS = 200_000  # among about so many
SPACING_NEIGHBOR = 7  # the one whose distance is the spacing of the points
# Correlation of log spacing with log range: of simulated LiDAR scans 0.77 to 0.94 about their middle (after
# downsampling 0.37 and more), of simulated fragments of depth cameras 0.20 at most.
MIN_SPACING_CORRELATION = 0.3
# From which on the place is known: simulated LiDAR scans have 0.67 to 0.98 at the place found, which turns
# 98 % of the normals and more to the true side; fragments have 0.37 at most.
MIN_KNOWN_CORRELATION = 0.6
MAX_HIDDEN_FRACTION = 0.06  # from a known place; of these scans 0.031 at most
MAX_CORRELATION_DEFICIT = 0.02  # below the best place, of places as good
HEIGHTS = 21  # that are tried, up to a standard deviation of the points up and down

MAX_OCCLUSION_POINTS = 5_000  # of a surface
# For 23 simulated fragments the place found was the same as by all points for all places, with 500 for 22.
SCREENING_POINTS, SCREENED_PLACES = 1_000, 40
MAX_RAYS = 1 << 14  # computed together, in arrays that fit the cache
FACE_CELLS = 30  # of the range image, to a side of each of the six faces of a cube: 3 degrees
WIDTH = 1.5 * np.radians(90.0) / FACE_CELLS  # from the middle of a cell to the far edge of the next
OCCLUSION_MARGIN_VOXELS = 4.0  # behind a surface, from which on a point is hidden
MIN_INCIDENCE_COSINE = 0.3  # below it a surface is seen edge-on
DIRECTIONS = 80  # from the middle of the cloud in which places are tried
DISTANCES_RADII = (0.6, 1.0, 1.5, 2.0, 2.7)  # and how far out, in RMS radii of the cloud


ViewOf: TypeAlias = "Callable[[np.ndarray, np.ndarray, float], View]"  # of a surface, normals, a margin


@dataclass(frozen=True)
class Viewpoint:
    """The place that normals point to, and whether a sensor is known to have stood there or only may have.

    It is known if it is stated, and if the cloud itself proves it.
    """

    position: np.ndarray  # (3,) float64, metres, of the whole cloud; or (N, 3), of each point
    known: bool

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """That of some points of the cloud: (3,), or (M, 3) for rows (M,) int64."""
        return self.position if self.position.ndim == 1 else self.position[rows]


def estimated_viewpoint(
    points: np.ndarray,
    surface: np.ndarray,
    normals: np.ndarray,
    voxel: float,
    view_of: "ViewOf | None" = None,
    index: Callable[[np.ndarray], Any] = tree_for_few,
) -> Viewpoint:
    """The place from which the cloud (N, 3) was most likely seen.

    `surface` (S, 3), S > 0, is the cloud downsampled to one point per `voxel` metres, with `normals` (S, 3)
    of either sign. `view_of` makes the View that is asked, and `index` a tree of
    points for few queries, by default here.
    """
    view = (view_of or View)(surface, normals, OCCLUSION_MARGIN_VOXELS * voxel).of_points(
        MAX_OCCLUSION_POINTS
    )
    spacing = _Spacing(points, index)
    middle = surface.mean(0)
    around = surface - middle
    radius = float(np.sqrt(dot(around, around).mean()))
    if spacing.correlation(middle) >= MIN_SPACING_CORRELATION:
        return _surrounded(view, spacing, middle, radius)
    return Viewpoint(_one_sided(view, middle, radius), known=False)


def _surrounded(view: "View", spacing: "_Spacing", middle: np.ndarray, radius: float) -> Viewpoint:
    """The viewpoint of a cloud all around its sensor: where spacing and range correlate most.

    It is searched in the plane through the middle in which the cloud spreads most. Across that plane the
    spacing hardly changes: above a street, a place as deep below the ground correlates as well. Of such
    places it is the one from which the fewest points are hidden, and of those the one nearest to the plane.
    """
    from scipy.optimize import minimize  # takes 0.05 s to import

    variances, axes = np.linalg.eigh(np.cov((view.surface - middle).T))
    plane = axes[:, 1:] * radius  # (3, 2)
    found = minimize(
        lambda x: -spacing.correlation(middle + plane @ x),
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": [[0, 0], [0.3, 0], [0, 0.3]], "xatol": 1e-3, "fatol": 1e-4},
    )
    heights = np.linspace(-1, 1, HEIGHTS) * np.sqrt(max(variances[0], 0.0))
    heights = heights[np.argsort(np.abs(heights), kind="stable")]
    places = middle + plane @ found.x + heights[:, None] * axes[:, 0]
    places = [p for p in places if spacing.correlation(p) >= -found.fun - MAX_CORRELATION_DEFICIT]
    hidden = np.round(view.hidden(np.array(places))[0], 3)
    known = -found.fun >= MIN_KNOWN_CORRELATION and hidden.min() <= MAX_HIDDEN_FRACTION
    return Viewpoint(places[int(np.argmin(hidden))], bool(known))


def _one_sided(view: "View", middle: np.ndarray, radius: float) -> np.ndarray:
    """Of a cloud in front of its sensor the place (3,), among many, from which most of it is visible.

    Some of its points tell which places are worth a look at all of them.
    """
    places = np.concatenate([middle[None], *(middle + d * radius * _directions() for d in DISTANCES_RADII)])
    scores = view.of_points(SCREENING_POINTS).scores(places)
    places = places[np.argsort(scores, kind="stable")[:SCREENED_PLACES]]
    return places[np.argmin(view.scores(places))]


class _Spacing:
    """The spacing of a cloud at some of its points."""

    def __init__(self, points: np.ndarray, index: Callable[[np.ndarray], Any]):
        rng = np.random.default_rng(0)
        if len(points) > MAX_SPACING_POINTS:  # about so many; to draw exactly so many takes longer
            chosen = rng.random(len(points), dtype=np.float32) < MAX_SPACING_POINTS / len(points)
            points = points.take(np.flatnonzero(chosen), axis=0)
        some = np.asarray(_some(points, MAX_SPACING_QUERIES, rng))
        self.columns = np.ascontiguousarray(some.T)
        neighbor = min(SPACING_NEIGHBOR, len(points) - 1)
        distance = index(points).query(some, [neighbor + 1])[0][:, 0]
        self.log_spacing = _standardized(np.log(np.maximum(distance, 1e-6)))

    def correlation(self, place: np.ndarray) -> float:
        """Of log spacing with log range from the place (3,), from -1 to 1."""
        squares = self.columns - place[:, None]
        squares *= squares
        x, y, z = squares
        x += y
        x += z
        log_range = np.log(np.maximum(np.sqrt(x, out=x), 1e-6, out=x), out=x)
        return float((_standardized(log_range) * self.log_spacing).sum() / len(log_range))


def _some(points: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """At most `count` of points (N, 3), chosen at random, in their order."""
    if len(points) <= count:
        return points
    chosen = np.zeros(len(points), dtype=bool)
    chosen[rng.choice(len(points), count, replace=False)] = True
    return points.take(np.flatnonzero(chosen), axis=0)


def _standardized(values: np.ndarray) -> np.ndarray:
    values = values - values.sum() / len(values)  # NumPy's mean takes twice as long of so few
    deviation = np.sqrt((values * values).sum() / len(values))
    return values / deviation if deviation > 0 else np.zeros_like(values)


class View:
    """How a surface would look from other places."""

    def __init__(self, surface: np.ndarray, normals: np.ndarray, margin: float):
        self.surface, self.normals, self.margin = surface, normals, margin

    def of_points(self, count: int) -> "View":
        """That of so many of the points."""
        return View(every_nth(self.surface, count), every_nth(self.normals, count), self.margin)

    def scores(self, places: np.ndarray) -> np.ndarray:
        """The fractions (P,) of points that are hidden from the places (P, 3) and seen edge-on, added up."""
        return np.add(*self.hidden(places))

    def hidden(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fractions (P,) of points hidden from the places (P, 3), P > 0, and of those seen edge-on.

        A point is hidden if its cell of the range image and all eight around it have a nearer point: so the
        outline of an object, whose cells also show the background, hides nothing. The change of range of a
        slanted surface within these cells is allowed for.
        """
        at_once = max(1, MAX_RAYS // len(self.surface))
        parts = [self._hidden(places[n : n + at_once]) for n in range(0, len(places), at_once)]
        hidden, edge_on = (np.concatenate(each) for each in zip(*parts, strict=True))
        return hidden, edge_on

    def _hidden(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rays = self.surface.T[:, None] - places.T[:, :, None]  # (3, P, N)
        distance = np.sqrt(_dot(rays, rays))
        cosine = np.abs(_dot(rays, self.normals.T)) / np.maximum(distance, 1e-9)
        cell = _cube_cells(rays)
        nearest = np.full((len(places), 6, FACE_CELLS, FACE_CELLS), np.inf)
        np.minimum.at(nearest.reshape(-1), cell, distance)
        occluder = _furthest_around(nearest).reshape(-1)[cell]
        slope = np.sqrt(1 - np.minimum(cosine, 1.0) ** 2) / np.maximum(cosine, MIN_INCIDENCE_COSINE)
        behind = distance - self.margin - distance * WIDTH * slope > occluder
        edge_on = cosine < MIN_INCIDENCE_COSINE
        return (behind & ~edge_on).mean(1), edge_on.mean(1)


def _furthest_around(nearest: np.ndarray) -> np.ndarray:
    """The largest of each cell of images (..., rows, columns) and the eight around it; inf at their edges."""
    furthest = np.full_like(nearest, np.inf)
    rows = np.maximum(np.maximum(nearest[..., :-2, :], nearest[..., 1:-1, :]), nearest[..., 2:, :])
    furthest[..., 1:-1, 1:-1] = np.maximum(np.maximum(rows[..., :-2], rows[..., 1:-1]), rows[..., 2:])
    return furthest


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of vectors (3, ...)."""
    (ax, ay, az), (bx, by, bz) = a, b
    return (ax * bx + ay * by) + az * bz


def _cube_cells(rays: np.ndarray) -> np.ndarray:
    """The cell (P, N) int64 of rays (3, P, N) on P cubes, counted by cube, face, row and column.

    The cells of a cube have about equal angles.
    """
    x, y, z = rays
    along_x, along_y, along_z = np.abs(rays)
    is_x = (along_x >= along_y) & (along_x >= along_z)
    is_y = ~is_x & (along_y >= along_z)
    axis = np.where(is_x, 0, np.where(is_y, 1, 2))
    main, *others = (np.where(is_x, a, np.where(is_y, b, c)) for a, b, c in ((x, y, z), (y, z, x), (z, x, y)))
    divisor = np.maximum(np.abs(main), 1e-9)
    cell = 6 * np.arange(len(axis))[:, None] + 2 * axis + (main > 0)
    for other in others:
        angle = np.arctan(other / divisor)
        cell *= FACE_CELLS
        cell += np.clip(((angle / np.pi * 2 + 0.5) * FACE_CELLS).astype(int), 0, FACE_CELLS - 1)
    return cell


def _directions() -> np.ndarray:
    """Unit vectors (DIRECTIONS, 3), evenly spread: a spherical Fibonacci lattice."""
    n = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * n / DIRECTIONS, np.pi * (1 + 5**0.5) * n
    flat = np.sqrt(1 - z**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)
