"""Viewpoint of a cloud, the place of its sensor, estimated from the cloud alone.

Normals point to the viewpoint, and free space lies between the viewpoint and the surfaces. In many clouds the
origin is not the sensor: those in an odometry, floor or survey frame, merged maps, cut-outs. So the origin is
not used. The estimate is the place from which the cloud looks most like the view of a sensor: then 97 % of
simulated scans of objects have their normals on the true side, of rooms 96 to 100 %. A place counts as known
if the spacing of a spinning sensor's points proves it; else the notes of a doubtful answer name the estimate.
An object that was scanned all around, or a model of it, has no such place: `viewpoint_around` has eight.

Three cues distinguish the place from which a cloud was seen:

- spacing: neighbouring points are further from each other at a larger range, and where a surface is slanted;
  this alone separates the front of a surface from its back, unless scans were fused;
- occlusion: no point lies behind a surface that was seen;
- incidence: surfaces that are seen edge-on have few points.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from pcreg.arrays import Array, Index, like, namespace, take, to_host
from pcreg.geometry.se3 import dot
from pcreg.geometry.visibility import View, column_dot, places_in_parts

MAX_SPACING_QUERIES = 2_000  # points whose neighbours are searched
MAX_SPACING_POINTS = 200_000  # their neighbours are searched among about as many points
SPACING_NEIGHBOR = 7  # rank of the neighbour whose distance is the spacing
# Correlation of log spacing with log range: of simulated LiDAR scans 0.77 to 0.94 about their middle (after
# downsampling 0.37 and more), of simulated fragments of depth cameras 0.20 at most.
MIN_SPACING_CORRELATION = 0.3
# Correlation that proves a place: simulated LiDAR scans have 0.67 to 0.98 at the place found, and 98 % and
# more of their normals get the true sign; fragments have 0.37 at most.
MIN_KNOWN_CORRELATION = 0.6
MAX_HIDDEN_FRACTION = 0.06  # of points hidden from such a place; of simulated LiDAR scans 0.031 at most
MAX_CORRELATION_DEFICIT = 0.02  # a place this much below the best one counts as equally good
HEIGHTS = 21  # that are tried, up to a standard deviation above and below the middle

MAX_OCCLUSION_POINTS = 5_000  # of a surface
SCREENING_POINTS = 1_000  # by which all places are compared; 5,000 find no better places
SCREENED_PLACES = 40  # best ones of a fused cloud, compared again by all points
OCCLUSION_MARGIN_VOXELS = 4.0  # a point that far behind a surface is hidden
DIRECTIONS = 80  # from the middle of the cloud, in which places are tried
# Distances of these places in RMS radii of the cloud, for a single scan and for a fused cloud
DISTANCES_RADII, FUSED_DISTANCES_RADII = (0.6, 1.0, 1.5, 2.5, 4.5), (0.6, 1.0, 1.5, 2.0, 2.7)
# Correlation, with incidence, that the spacing of a single sensor has at least: nine in ten of 42 simulated
# fragments, fused from images, have 0.44 at most, thinned 0.32; scans of rooms 0.51 and more, of objects,
# thinned, 0.47 and more.
MIN_EXPLAINED_CORRELATION = 0.45
MIN_SPACING_COSINE = 0.15  # smaller cosines are raised to it: a bound for surfaces seen edge-on
MAX_WITHIN_RADII = 1.2  # from the middle of a cloud to a place within it, in RMS radii
CORNERS = np.array(list(product((-1.0, 1.0), repeat=3))) / 3**0.5  # directions (8, 3) around a cloud
AROUND_RADII = 2.5  # from its middle to places in these directions, in RMS radii


@dataclass(frozen=True)
class Viewpoint:
    """Place that normals point to; `known` if it is stated, or proved by the cloud itself."""

    position: Array  # (3,) float64 on the host, metres, of the whole cloud; or (N, 3), of each point
    known: bool

    def of_rows(self, rows: Array) -> Array:
        """Viewpoint of some points of the cloud: (3,), or (M, 3) for rows (M,) int64."""
        return self.position if self.position.ndim == 1 else self.position[rows]


def estimated_viewpoint(points: Array, surface: Array, normals: Array, voxel: float) -> Viewpoint:
    """Place from which the cloud (N, 3), N > 7, was most likely seen.

    `surface` (S, 3), S > 0, is the cloud downsampled to one point per `voxel` metres, with `normals` (S, 3)
    of either sign.
    """
    view = View(surface, normals, OCCLUSION_MARGIN_VOXELS * voxel).of_points(MAX_OCCLUSION_POINTS)
    spacing = _Spacing.of(points, surface, normals)
    middle, radius = _middle_and_radius(surface)
    places = _places(middle, radius, DISTANCES_RADII)
    fits, screening = spacing.correlations(places, incidence=True), view.of_points(SCREENING_POINTS)
    if spacing.correlations(middle[None])[0] >= MIN_SPACING_CORRELATION:
        found, correlation = _surrounded(view, spacing.on_host(), middle, radius)
        explained = spacing.correlations(found.position[None], incidence=True)
        if max(correlation, *explained) >= fits.max() - MAX_CORRELATION_DEFICIT:
            return found
    if fits.max() >= MIN_EXPLAINED_CORRELATION:
        return Viewpoint(places[np.argmin(screening.scores(places) - fits)], known=False)
    places = _places(middle, radius, FUSED_DISTANCES_RADII)
    places = places[np.argsort(screening.scores(places), kind="stable")[:SCREENED_PLACES]]
    return Viewpoint(places[np.argmin(view.scores(places))], known=False)


def viewpoint_around(points: Array, surface: Array, normals: Array, voxel: float) -> Viewpoint:
    """The one of eight places around a cloud (N, 3) that sees each point best.

    For an object seen from all sides. Arguments as for `estimated_viewpoint`.
    """
    middle, radius = _middle_and_radius(surface)
    places = like(middle + AROUND_RADII * radius * CORNERS, points)
    best = View(surface, normals, OCCLUSION_MARGIN_VOXELS * voxel).best_directions(CORNERS)
    nearest = Index(surface, few=True).query(points)[1]
    return Viewpoint(take(places, take(best, nearest)), known=False)


def is_within(place: np.ndarray, surface: Array) -> bool:
    """True if a place (3,) lies within a cloud (N, 3), as the estimate of an object scanned all around."""
    middle, radius = _middle_and_radius(surface)
    return bool(np.linalg.norm(place - middle) < MAX_WITHIN_RADII * radius)


def _middle_and_radius(surface: Array) -> tuple[np.ndarray, float]:
    """Mean (3,) of a cloud (N, 3), on the host, and the RMS distance of its points from it."""
    middle = surface.mean(0)
    around = surface - middle
    return to_host(middle), float(dot(around, around).mean()) ** 0.5


def _surrounded(
    view: "View", spacing: "_Spacing", middle: np.ndarray, radius: float
) -> tuple[Viewpoint, float]:
    """Viewpoint inside a cloud, near its main plane, and the correlation of spacing with range from there."""
    from scipy.optimize import minimize  # takes 0.05 s to import

    variances, axes = np.linalg.eigh(np.cov((to_host(view.surface) - middle).T))
    plane = axes[:, 1:] * radius  # (3, 2)
    found = minimize(
        lambda x: -spacing.correlations(middle[None] + plane @ x)[0],
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": [[0, 0], [0.3, 0], [0, 0.3]], "xatol": 1e-3, "fatol": 1e-4},
    )
    # The spacing hardly depends on the height over the plane: take the height with the fewest hidden points
    heights = np.linspace(-1, 1, HEIGHTS) * np.sqrt(max(variances[0], 0.0))
    heights = heights[np.argsort(np.abs(heights), kind="stable")]
    places = middle + plane @ found.x + heights[:, None] * axes[:, 0]
    places = places[spacing.correlations(places) >= -found.fun - MAX_CORRELATION_DEFICIT]
    hidden = np.round(view.hidden(places)[0], 3)
    known = -found.fun >= MIN_KNOWN_CORRELATION and hidden.min() <= MAX_HIDDEN_FRACTION
    return Viewpoint(places[int(np.argmin(hidden))], bool(known)), -found.fun


@dataclass(frozen=True)
class _Spacing:
    """Point spacing of a cloud at N of its points."""

    points: Array  # (3, N) float64, metres
    normals: Array  # (3, N) float64
    log_spacing: Array  # (N,) float64, standardized

    @staticmethod
    def of(points: Array, surface: Array, normals: Array) -> "_Spacing":
        rng = np.random.default_rng(0)
        if len(points) > MAX_SPACING_POINTS:  # drawing an exact number takes longer
            chosen = rng.random(len(points), dtype=np.float32) < MAX_SPACING_POINTS / len(points)
            points = take(points, like(np.flatnonzero(chosen), points))
        queries = rng.choice(len(points), min(len(points), MAX_SPACING_QUERIES), replace=False)
        some = take(points, like(np.sort(queries), points))
        distance = Index(points, few=True).kth_distance(some, SPACING_NEIGHBOR + 1)
        nearest = take(normals, Index(surface, few=True).query(some)[1])
        xp = namespace(points)
        columns = (xp.stack([*rows.T]) for rows in (some, nearest))
        return _Spacing(*columns, _standardized(xp.log(distance.clip(min=1e-6))))

    def on_host(self) -> "_Spacing":
        """Copy to the host, where single places are compared in less time."""
        return _Spacing(to_host(self.points), to_host(self.normals), to_host(self.log_spacing))

    def correlations(self, places: np.ndarray, *, incidence: bool = False) -> np.ndarray:
        """Correlations (P,) of log spacing with log range from the places (P, 3), from -1 to 1.

        With `incidence`, the spacing expected of a sensor with even angular resolution replaces the range.
        """
        parts = places_in_parts(places, self.points, self.points.shape[1])
        return np.concatenate([self._correlations(part, incidence) for part in parts])

    def _correlations(self, places: np.ndarray, incidence: bool) -> np.ndarray:
        xp = namespace(self.points)
        rays = self.points[:, None] - like(places, self.points).T[:, :, None]  # (3, P, N)
        squares = column_dot(rays, rays).clip(min=1e-12)
        if incidence:
            cosine = xp.abs(column_dot(rays, self.normals)) / xp.sqrt(squares)
            squares /= cosine.clip(min=MIN_SPACING_COSINE)
        products = _standardized(xp.log(squares)) * self.log_spacing
        return to_host(products.sum(-1) / self.points.shape[1])


def _standardized(values: Array) -> Array:
    """Rows (..., N) less their mean, divided by their standard deviation; 0 where that is 0."""
    xp = namespace(values)
    values = values - values.mean(-1)[..., None]
    deviation = xp.sqrt((values * values).mean(-1))[..., None]
    return values / xp.where(deviation > 0, deviation, 1)


def _places(middle: np.ndarray, radius: float, distances: tuple[float, ...]) -> np.ndarray:
    """The middle (3,) and places in all directions from it, `distances` times the radius away: (P, 3)."""
    return np.concatenate([middle[None], *(middle + d * radius * _directions() for d in distances)])


def _directions() -> np.ndarray:
    """Unit vectors (DIRECTIONS, 3), evenly spread: a spherical Fibonacci lattice."""
    n = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * n / DIRECTIONS, np.pi * (1 + 5**0.5) * n
    flat = np.sqrt(1 - z**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)
