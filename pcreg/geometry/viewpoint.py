"""Viewpoint of a cloud, the place of its sensor, estimated from the cloud alone.

Normals point to the viewpoint, and free space lies between the viewpoint and the surfaces. In many clouds the
origin is not the sensor: those in an odometry, floor or survey frame, merged maps, cut-outs. So the origin is
not used. The estimate is the place from which the cloud looks most like the view of a sensor: then 97 % of
simulated scans of objects have their normals on the true side, of rooms 96 to 100 %. A place counts as known
if the spacing of a spinning sensor's points proves it; else the notes of a doubtful answer name the estimate.

Three cues distinguish the place from which a cloud was seen:

- spacing: neighbouring points are further from each other at a larger range, and where a surface is slanted;
  this alone separates the front of a surface from its back, unless scans were fused;
- occlusion: no point lies behind a surface that was seen;
- incidence: surfaces that are seen edge-on have few points.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, Index, every_nth, is_on_host, like, namespace, scatter_min, take, to_host
from pcreg.geometry.se3 import dot

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
MAX_RAYS = 1 << 14  # computed together on the CPU, in arrays that fit the cache
GPU_MAX_RAYS = 1 << 22
FACE_CELLS = 30  # along an edge of each face of the cube that is the range image: 3 degrees
WIDTH = 1.5 * np.radians(90.0) / FACE_CELLS  # from the middle of a cell to the far edge of the next
OCCLUSION_MARGIN_VOXELS = 4.0  # a point that far behind a surface is hidden
MIN_INCIDENCE_COSINE = 0.3  # below it a surface is seen edge-on
DIRECTIONS = 80  # from the middle of the cloud, in which places are tried
# Distances of these places in RMS radii of the cloud, for a single scan and for a fused cloud
DISTANCES_RADII, FUSED_DISTANCES_RADII = (0.6, 1.0, 1.5, 2.5, 4.5), (0.6, 1.0, 1.5, 2.0, 2.7)
# Correlation, with incidence, that the spacing of a single sensor has at least: nine in ten of 42 simulated
# fragments, fused from images, have 0.44 at most, thinned 0.32; scans of rooms 0.51 and more, of objects,
# thinned, 0.47 and more.
MIN_EXPLAINED_CORRELATION = 0.45
MIN_SPACING_COSINE = 0.15  # smaller cosines are raised to it: a bound for surfaces seen edge-on


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
    middle = surface.mean(0)
    around = surface - middle
    middle, radius = to_host(middle), float(dot(around, around).mean()) ** 0.5
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
        parts = _parts(places, self.points, self.points.shape[1])
        return np.concatenate([self._correlations(part, incidence) for part in parts])

    def _correlations(self, places: np.ndarray, incidence: bool) -> np.ndarray:
        xp = namespace(self.points)
        rays = self.points[:, None] - like(places, self.points).T[:, :, None]  # (3, P, N)
        squares = _dot(rays, rays).clip(min=1e-12)
        if incidence:
            cosine = xp.abs(_dot(rays, self.normals)) / xp.sqrt(squares)
            squares /= cosine.clip(min=MIN_SPACING_COSINE)
        products = _standardized(xp.log(squares)) * self.log_spacing
        return to_host(products.sum(-1) / self.points.shape[1])


def _standardized(values: Array) -> Array:
    """Rows (..., N) less their mean, divided by their standard deviation; 0 where that is 0."""
    xp = namespace(values)
    values = values - values.mean(-1)[..., None]
    deviation = xp.sqrt((values * values).mean(-1))[..., None]
    return values / xp.where(deviation > 0, deviation, 1)


def _parts(places: np.ndarray, points: Array, count: int) -> list[np.ndarray]:
    """Split places (P, 3) into parts to compare with `count` points at once, on the device of `points`."""
    size = max(1, (MAX_RAYS if is_on_host(points) else GPU_MAX_RAYS) // count)
    return [places[start : start + size] for start in range(0, len(places), size)]


@dataclass(frozen=True)
class View:
    """Visibility of a surface from other places."""

    surface: Array  # (N, 3) float64, metres
    normals: Array  # (N, 3) float64
    margin: float  # metres behind the surface, from which on points are hidden

    def of_points(self, count: int) -> "View":
        """View of `count` of the points at most."""
        return View(every_nth(self.surface, count), every_nth(self.normals, count), self.margin)

    def scores(self, places: np.ndarray) -> np.ndarray:
        """Sums (P,) of the fractions of points hidden from places (P, 3), and of those seen edge-on."""
        return self.hidden(places).sum(0)

    def hidden(self, places: np.ndarray) -> np.ndarray:
        """Fractions (2, P) of points hidden from places (P, 3), P > 0, and of those seen edge-on.

        A point is hidden if its cell of the range image and all eight around it have a nearer point. So the
        outline of an object hides nothing, as cells there also show the background. The margin grows with the
        change of range of a slanted surface within these cells.
        """
        parts = _parts(places, self.surface, len(self.surface))
        return np.concatenate([self._hidden(part) for part in parts], axis=1) / len(self.surface)

    def _hidden(self, places: np.ndarray) -> np.ndarray:
        """Number (2, P) of points hidden, and seen edge-on, from the places (P, 3)."""
        xp = namespace(self.surface)
        rays = self.surface.T[:, None] - like(places, self.surface).T[:, :, None]  # (3, P, N)
        distance = xp.sqrt(_dot(rays, rays))
        cosine = xp.abs(_dot(rays, self.normals.T)) / distance.clip(min=1e-9)
        cell = _cube_cells(rays)
        nearest = scatter_min(distance, cell, len(places) * 6 * FACE_CELLS**2)
        nearest = nearest.reshape(len(places), 6, FACE_CELLS, FACE_CELLS)
        occluder = _furthest_around(nearest).reshape(-1)[cell]
        slope = xp.sqrt(1 - cosine.clip(max=1.0) ** 2) / cosine.clip(min=MIN_INCIDENCE_COSINE)
        behind = distance - self.margin - distance * WIDTH * slope > occluder
        edge_on = cosine < MIN_INCIDENCE_COSINE
        return to_host(xp.stack([(behind & ~edge_on).sum(1), edge_on.sum(1)]))


def _furthest_around(nearest: Array) -> Array:
    """Largest of each cell of images (..., rows, columns) and the eight around it; inf at their edges."""
    xp = namespace(nearest)
    furthest = xp.full_like(nearest, xp.inf)
    rows = xp.maximum(xp.maximum(nearest[..., :-2, :], nearest[..., 1:-1, :]), nearest[..., 2:, :])
    furthest[..., 1:-1, 1:-1] = xp.maximum(xp.maximum(rows[..., :-2], rows[..., 1:-1]), rows[..., 2:])
    return furthest


def _dot(a: Array, b: Array) -> Array:
    """Dot products (...) of vectors (3, ...)."""
    (ax, ay, az), (bx, by, bz) = a, b
    return (ax * bx + ay * by) + az * bz


def _cube_cells(rays: Array) -> Array:
    """Cells (P, N) int64, of similar angles, of rays (3, P, N) on P cubes: by cube, face, row, column."""
    xp = namespace(rays)
    x, y, z = rays
    along_x, along_y, along_z = xp.abs(rays)
    is_x = (along_x >= along_y) & (along_x >= along_z)
    is_y = ~is_x & (along_y >= along_z)
    axis = xp.where(is_x, 0, xp.where(is_y, 1, 2))
    main, *others = (xp.where(is_x, a, xp.where(is_y, b, c)) for a, b, c in ((x, y, z), (y, z, x), (z, x, y)))
    divisor = xp.abs(main).clip(min=1e-9)
    cell = 6 * xp.arange(len(axis), device=rays.device)[:, None] + 2 * axis + (main > 0)
    for other in others:
        angle = xp.atan(other / divisor)
        cell *= FACE_CELLS
        cell += xp.astype((angle / np.pi * 2 + 0.5) * FACE_CELLS, xp.int64).clip(0, FACE_CELLS - 1)
    return cell


def _places(middle: np.ndarray, radius: float, distances: tuple[float, ...]) -> np.ndarray:
    """The middle (3,) and places in all directions from it, `distances` times the radius away: (P, 3)."""
    return np.concatenate([middle[None], *(middle + d * radius * _directions() for d in distances)])


def _directions() -> np.ndarray:
    """Unit vectors (DIRECTIONS, 3), evenly spread: a spherical Fibonacci lattice."""
    n = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * n / DIRECTIONS, np.pi * (1 + 5**0.5) * n
    flat = np.sqrt(1 - z**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)
