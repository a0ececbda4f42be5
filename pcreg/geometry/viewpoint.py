"""The viewpoint of a cloud, where its sensor stood: stated, or the origin if the cloud agrees, or estimated.

Normals point to the viewpoint, and free space lies between it and the surfaces. Many clouds have an origin
that is no sensor: those in an odometry, floor or survey frame, merged maps, cut-outs. So the origin is taken
only where the cloud looks like a view from there. Otherwise the viewpoint is estimated from the cloud alone,
as the place from which it looks most like a view. Free space and the sides of surfaces then have less weight
in the confidence (pcreg/registration/confidence.py).

Three cues distinguish the place from which a cloud was seen:

- spacing: the distance of neighbouring points of a spinning sensor is proportional to their range;
- occlusion: no point lies behind a surface that was seen;
- incidence: surfaces that are seen edge-on have few points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from pcreg.geometry.subsample import every_nth
from pcreg.runtime.errors import InputError

OPTIONS = ("auto", "sensor", "unknown")
ORIGIN = np.zeros(3)

MAX_SPACING_QUERIES = 2_000  # points whose neighbours are searched, among at most a hundred times as many
SPACING_NEIGHBOR = 7  # the one whose distance is the spacing of the points
# Correlation of log spacing with log range: of simulated LiDAR scans 0.77 to 0.94 about their middle (after
# downsampling 0.37 and more), of simulated fragments of depth cameras 0.20 at most.
MIN_SPACING_CORRELATION = 0.3
MAX_CORRELATION_DEFICIT = 0.02  # of the origin below the best place; of a true sensor 0.01 at most
MAX_HIDDEN_FRACTION = 0.06  # from a true sensor 0.04 at most; fragments have several views
# Of the origin over the best place: five in six true sensors have less, and one in 25 places 3 m from them.
MAX_SCORE_EXCESS = 0.1
ACCEPT_SCORE = 0.05  # of the origin, up to which no other place is tried

MAX_OCCLUSION_POINTS = 5_000  # of a surface
FACE_CELLS = 30  # of the range image, to a side of each of the six faces of a cube: 3 degrees
OCCLUSION_MARGIN_VOXELS = 4.0  # behind a surface, from which on a point is hidden
MIN_INCIDENCE_COSINE = 0.3  # below it a surface is seen edge-on
DIRECTIONS = 80  # from the middle of the cloud in which places are tried
DISTANCES_RADII = (0.6, 1.0, 1.5, 2.0, 2.7)  # and how far out, in RMS radii of the cloud
MAX_DISTANCE_RADII = 4.0  # from the middle to a sensor: from further away anything looks like one view


@dataclass(frozen=True)
class Viewpoint:
    """The place that normals point to, and whether a sensor is known to have stood there or only may have."""

    position: np.ndarray  # (3,) float64, metres, in the frame of the cloud
    known: bool


# One of OPTIONS; x, y, z; or decided before.
ViewpointOption: TypeAlias = str | Sequence[float] | np.ndarray | Viewpoint


def check_viewpoint(option: ViewpointOption) -> ViewpointOption:
    """The option, `x, y, z` as an array; InputError for anything else than OPTIONS."""
    if isinstance(option, Viewpoint):
        return option
    if isinstance(option, str):
        if option in OPTIONS:
            return option
    else:
        try:
            position = np.asarray(option, dtype=np.float64)
        except (TypeError, ValueError):
            position = np.empty(0)
        if position.shape == (3,) and np.isfinite(position).all():
            return position
    raise InputError(f"viewpoint {option} is none; use {', '.join(OPTIONS)}, or x, y, z in metres")


def of_both(
    option: ViewpointOption | tuple[ViewpointOption, ViewpointOption],
) -> tuple[ViewpointOption, ViewpointOption]:
    """The options for source and target: of two each has its own, and one is for both."""
    if isinstance(option, list | tuple) and len(option) == 2:
        return tuple(check_viewpoint(each) for each in option)
    return (check_viewpoint(option),) * 2


def viewpoint_of(
    points: np.ndarray,
    surface: np.ndarray,
    normals: np.ndarray,
    voxel: float,
    option: ViewpointOption = "auto",
) -> Viewpoint:
    """The viewpoint of the cloud (N, 3), by the option.

    `surface` (S, 3), S > 0, is the cloud downsampled to one point per `voxel` metres, with `normals` (S, 3)
    of either sign. `auto` takes the origin if the cloud looks like a view from there, `sensor` in any case,
    `unknown` in none; else the viewpoint is estimated.
    """
    if isinstance(option, Viewpoint):
        return option
    if not isinstance(option, str):
        return Viewpoint(np.asarray(option, dtype=np.float64), known=True)
    if option == "sensor":
        return Viewpoint(ORIGIN, known=True)
    shown = (every_nth(rows, MAX_OCCLUSION_POINTS) for rows in (surface, normals))
    view, spacing = _View(*shown, voxel), _Spacing(points)
    middle = surface.mean(0)
    radius = float(np.sqrt(((surface - middle) ** 2).sum(1).mean()))
    if spacing.correlation(middle) >= MIN_SPACING_CORRELATION:
        return _surrounded(view, spacing, middle, radius, option == "auto")
    return _one_sided(view, middle, radius, option == "auto")


def _surrounded(
    view: "_View", spacing: "_Spacing", middle: np.ndarray, radius: float, try_origin: bool
) -> Viewpoint:
    """The viewpoint of a cloud all around its sensor: where spacing and range correlate most.

    It is searched in the plane through the middle in which the cloud spreads most. Across that plane the
    spacing hardly changes: above a street, a place as deep below the ground correlates as well.
    """
    plane = np.linalg.eigh(np.cov((view.surface - middle).T))[1][:, 1:] * radius  # (3, 2)
    found = minimize(
        lambda x: -spacing.correlation(middle + plane @ x),
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": [[0, 0], [0.3, 0], [0, 0.3]], "xatol": 1e-3, "fatol": 1e-4},
    )
    far = spacing.correlation(ORIGIN) < -found.fun - MAX_CORRELATION_DEFICIT
    if try_origin and not far and view.hidden(ORIGIN)[0] <= MAX_HIDDEN_FRACTION:
        return Viewpoint(ORIGIN, known=True)
    return Viewpoint(middle + plane @ found.x, known=False)


def _one_sided(view: "_View", middle: np.ndarray, radius: float, try_origin: bool) -> Viewpoint:
    """The viewpoint of a cloud in front of its sensor: of many places the one from which most is visible."""
    near = try_origin and np.linalg.norm(middle) <= MAX_DISTANCE_RADII * radius
    score = view.score(ORIGIN) if near else np.inf
    if score <= ACCEPT_SCORE:
        return Viewpoint(ORIGIN, known=True)
    places = np.concatenate([middle[None], *(middle + d * radius * _directions() for d in DISTANCES_RADII)])
    scores = np.array([view.score(place) for place in places])
    if score <= scores.min() + MAX_SCORE_EXCESS:
        return Viewpoint(ORIGIN, known=True)
    return Viewpoint(places[scores.argmin()], known=False)


class _Spacing:
    """The spacing of a cloud at some of its points."""

    def __init__(self, points: np.ndarray):
        rng = np.random.default_rng(0)
        if len(points) > 100 * MAX_SPACING_QUERIES:
            points = points[np.sort(rng.choice(len(points), 100 * MAX_SPACING_QUERIES, replace=False))]
        self.points = points
        if len(points) > MAX_SPACING_QUERIES:
            self.points = points[np.sort(rng.choice(len(points), MAX_SPACING_QUERIES, replace=False))]
        neighbor = min(SPACING_NEIGHBOR, len(points) - 1)
        distance = cKDTree(points).query(self.points, [neighbor + 1])[0][:, 0]
        self.log_spacing = _standardized(np.log(np.maximum(distance, 1e-6)))

    def correlation(self, place: np.ndarray) -> float:
        """Of log spacing with log range from the place (3,), from -1 to 1."""
        log_range = np.log(np.maximum(np.linalg.norm(self.points - place, axis=1), 1e-6))
        return float((_standardized(log_range) * self.log_spacing).mean())


def _standardized(values: np.ndarray) -> np.ndarray:
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values)


class _View:
    """How a surface would look from other places."""

    def __init__(self, surface: np.ndarray, normals: np.ndarray, voxel: float):
        self.surface, self.normals = surface, normals
        self.margin = OCCLUSION_MARGIN_VOXELS * voxel

    def score(self, place: np.ndarray) -> float:
        """The fractions of points that are hidden from the place (3,) and of those seen edge-on, added up."""
        return sum(self.hidden(place))

    def hidden(self, place: np.ndarray) -> tuple[float, float]:
        """The fraction of points hidden from the place (3,), and of those seen edge-on.

        A point is hidden if its cell of the range image and all eight around it have a nearer point: so the
        outline of an object, whose cells also show the background, hides nothing. The change of range of a
        slanted surface within these cells is allowed for.
        """
        ray = self.surface - place
        distance = np.linalg.norm(ray, axis=1)
        cosine = np.abs((ray * self.normals).sum(1)) / np.maximum(distance, 1e-9)
        cell = _cube_cells(ray)
        nearest = np.full((6, FACE_CELLS, FACE_CELLS), np.inf)
        np.minimum.at(nearest, cell, distance)
        occluder = maximum_filter(nearest, size=(1, 3, 3), mode="constant", cval=np.inf)[cell]
        slope = np.sqrt(1 - np.minimum(cosine, 1.0) ** 2) / np.maximum(cosine, MIN_INCIDENCE_COSINE)
        width = 1.5 * np.radians(90.0) / FACE_CELLS  # from the middle of a cell to the far edge of the next
        behind = distance - self.margin - distance * width * slope > occluder
        edge_on = cosine < MIN_INCIDENCE_COSINE
        return float((behind & ~edge_on).mean()), float(edge_on.mean())


def _cube_cells(rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Face, row and column (N,) int64 of rays (N, 3) on a cube whose cells have about equal angles."""
    rows = np.arange(len(rays))
    axis = np.abs(rays).argmax(1)
    main = rays[rows, axis]
    divisor = np.maximum(np.abs(main), 1e-9)
    angles = (np.arctan(rays[rows, (axis + shift) % 3] / divisor) for shift in (1, 2))
    row, column = (
        np.clip(((a / np.pi * 2 + 0.5) * FACE_CELLS).astype(int), 0, FACE_CELLS - 1) for a in angles
    )
    return 2 * axis + (main > 0), row, column


def _directions() -> np.ndarray:
    """Unit vectors (DIRECTIONS, 3), evenly spread: a spherical Fibonacci lattice."""
    n = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * n / DIRECTIONS, np.pi * (1 + 5**0.5) * n
    flat = np.sqrt(1 - z**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1)
