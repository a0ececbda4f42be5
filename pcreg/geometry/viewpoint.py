"""Where the sensor of a cloud stood: stated, or at the origin if the cloud bears it out, or estimated.

Normals point to the viewpoint, and free space lies between it and the surfaces. Many clouds have an origin
that is no sensor: those in an odometry, floor or survey frame, merged maps, cut-outs. So the origin is
believed only where the cloud looks like a view from there. Otherwise the viewpoint is estimated from the
cloud alone: it is the place from which the cloud looks most like a view. What free space and the sides of
surfaces then say counts less (pcreg/registration/confidence.py).

Three things tell a place from which a cloud was seen:

- spacing: a sensor that turns about itself leaves neighbouring points apart in proportion to their range;
- occlusion: no point lies behind a surface that was seen;
- incidence: surfaces that are seen edge-on are hardly seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from pcreg.runtime.errors import InputError

OPTIONS = ("auto", "sensor", "unknown")
ORIGIN = np.zeros(3)

SPACING_SAMPLE = 2_000  # points whose neighbours are looked for, among at most a hundred times as many
SPACING_NEIGHBOR = 7  # the one whose distance is the spacing of the points
# Correlation of log spacing with log range: of simulated LiDAR scans 0.77 to 0.94 about their middle (thinned
# to a grid 0.37 and more), of simulated fragments of depth cameras 0.20 at most.
MIN_SPACING_CORRELATION = 0.3
MAX_CORRELATION_DEFICIT = 0.02  # of the origin below the best place; of a true sensor 0.01 at most
MAX_HIDDEN = 0.06  # fraction of the points; from a true sensor 0.04 at most, as fragments have many views
# Of the origin over the best place: five in six true sensors have less, and one in 25 places 3 m from them.
MAX_SCORE_EXCESS = 0.1
CERTAIN_SCORE = 0.05  # so good that no other place need be looked for

OCCLUSION_POINTS = 5_000  # of a surface, at most, that are looked at
FACE_CELLS = 30  # of the range image, to a side of each of the six faces of a cube: 3 degrees
OCCLUSION_MARGIN = 4.0  # voxels behind a surface from which a point is hidden
GRAZING = 0.3  # cosine of the incidence below which a surface is seen edge-on
DIRECTIONS = 80  # from the middle of the cloud in which places are tried
DISTANCES = (0.6, 1.0, 1.5, 2.0, 2.7)  # and how far out, in RMS radii of the cloud
MAX_DISTANCE = 4.0  # RMS radii from the middle to a sensor: from further away anything looks like one view


@dataclass(frozen=True)
class Viewpoint:
    """The place that normals point to, and whether a sensor is known to have stood there or only may have."""

    position: np.ndarray  # (3,) float64, metres, in the frame of the cloud
    known: bool


# One of OPTIONS; x, y, z; or decided before.
ViewpointOption: TypeAlias = str | Sequence[float] | np.ndarray | Viewpoint


def check_viewpoint(option: ViewpointOption, name: str = "viewpoint") -> ViewpointOption:
    """The option, `x, y, z` as an array; InputError, by `name`, for anything else than OPTIONS."""
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
    raise InputError(f"{name} {option} is none; use {', '.join(OPTIONS)}, or x, y, z in metres")


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

    `surface` (S, 3), S > 0, is the cloud thinned to one point per `voxel` metres, with `normals` (S, 3) of
    either sign. `auto` believes the origin if the cloud bears it out, `sensor` in any case, `unknown` in
    none; where the origin is not believed the viewpoint is estimated.
    """
    if isinstance(option, Viewpoint):
        return option
    if not isinstance(option, str):
        return Viewpoint(np.asarray(option, dtype=np.float64), known=True)
    if option == "sensor":
        return Viewpoint(ORIGIN, known=True)
    step = -(-len(surface) // OCCLUSION_POINTS)
    view, spacing = _View(surface[::step], normals[::step], voxel), _Spacing(points)
    middle = surface.mean(0)
    radius = float(np.sqrt(((surface - middle) ** 2).sum(1).mean()))
    if spacing.correlation(middle) >= MIN_SPACING_CORRELATION:
        return _surrounded(view, spacing, middle, radius, option == "auto")
    return _one_sided(view, middle, radius, option == "auto")


def _surrounded(
    view: "_View", spacing: "_Spacing", middle: np.ndarray, radius: float, try_origin: bool
) -> Viewpoint:
    """The viewpoint of a cloud all around its sensor: the place that the spacing of the points tells.

    It is sought in the plane through the middle in which the cloud spreads most. Across it, over a street,
    the spacing hardly changes, and a place as deep below the ground would do as well.
    """
    plane = np.linalg.eigh(np.cov((view.surface - middle).T))[1][:, 1:] * radius  # (3, 2)
    found = minimize(
        lambda x: -spacing.correlation(middle + plane @ x),
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": [[0, 0], [0.3, 0], [0, 0.3]], "xatol": 1e-3, "fatol": 1e-4},
    )
    far = spacing.correlation(ORIGIN) < -found.fun - MAX_CORRELATION_DEFICIT
    if try_origin and not far and view.hidden(ORIGIN)[0] <= MAX_HIDDEN:
        return Viewpoint(ORIGIN, known=True)
    return Viewpoint(middle + plane @ found.x, known=False)


def _one_sided(view: "_View", middle: np.ndarray, radius: float, try_origin: bool) -> Viewpoint:
    """The viewpoint of a cloud before its sensor: of many places the one from which most is seen."""
    near = try_origin and np.linalg.norm(middle) <= MAX_DISTANCE * radius
    score = view.score(ORIGIN) if near else np.inf
    if score <= CERTAIN_SCORE:
        return Viewpoint(ORIGIN, known=True)
    places = np.concatenate([middle[None], *(middle + d * radius * _directions() for d in DISTANCES)])
    scores = np.array([view.score(place) for place in places])
    if score <= scores.min() + MAX_SCORE_EXCESS:
        return Viewpoint(ORIGIN, known=True)
    return Viewpoint(places[scores.argmin()], known=False)


class _Spacing:
    """How far apart the points of a cloud lie, at some of them."""

    def __init__(self, points: np.ndarray):
        rng = np.random.default_rng(0)
        if len(points) > 100 * SPACING_SAMPLE:
            points = points[np.sort(rng.choice(len(points), 100 * SPACING_SAMPLE, replace=False))]
        self.points = points
        if len(points) > SPACING_SAMPLE:
            self.points = points[np.sort(rng.choice(len(points), SPACING_SAMPLE, replace=False))]
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
        self.margin = OCCLUSION_MARGIN * voxel

    def score(self, place: np.ndarray) -> float:
        """The fractions of points that are hidden from the place (3,) and of those seen edge-on, added up."""
        return sum(self.hidden(place))

    def hidden(self, place: np.ndarray) -> tuple[float, float]:
        """The fraction of points hidden from the place (3,), and of those seen edge-on.

        A point is hidden if something is nearer in its cell of the range image and in all eight around it:
        so the outline of a thing, which shares cells with what is seen beside it, hides nothing. What a
        slanted surface gains in range within these cells is allowed for.
        """
        ray = self.surface - place
        distance = np.linalg.norm(ray, axis=1)
        cosine = np.abs((ray * self.normals).sum(1)) / np.maximum(distance, 1e-9)
        cell = _cube_cells(ray)
        nearest = np.full((6, FACE_CELLS, FACE_CELLS), np.inf)
        np.minimum.at(nearest, cell, distance)
        occluder = maximum_filter(nearest, size=(1, 3, 3), mode="constant", cval=np.inf)[cell]
        slope = np.sqrt(1 - np.minimum(cosine, 1.0) ** 2) / np.maximum(cosine, GRAZING)
        width = 1.5 * np.radians(90.0) / FACE_CELLS  # from the middle of a cell to the far edge of the next
        behind = distance - self.margin - distance * width * slope > occluder
        edge_on = cosine < GRAZING
        return float((behind & ~edge_on).mean()), float(edge_on.mean())


def _cube_cells(rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Face, row and column (N,) int64 of rays (N, 3) on a cube whose cells have about equal angles."""
    rows = np.arange(len(rays))
    axis = np.abs(rays).argmax(1)
    main = rays[rows, axis]
    reach = np.maximum(np.abs(main), 1e-9)
    angles = (np.arctan(rays[rows, (axis + shift) % 3] / reach) for shift in (1, 2))
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
