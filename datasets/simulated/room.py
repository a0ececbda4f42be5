"""A furnished room as one triangle mesh, drawn from a seeded generator.

World frame: x and y along the walls, z up, the floor's corner at the origin, metres. Each piece of
furniture is a function of the generator that returns meshes in its own frame: its back to the wall
y = 0, its width along x, its front towards -y, standing on z = 0. A new piece is one more function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pcreg.geometry.se3 import rotation_about, se3

if TYPE_CHECKING:
    from trimesh import Trimesh

UP = (0.0, 0.0, 1.0)
WALL = 0.25  # thickness: a window is recessed by less


@dataclass(frozen=True)
class Room:
    """The inner surface of a room and all that stands in it; size (3,) is its inner extent."""

    mesh: "Trimesh"
    size: np.ndarray


def furnished_room(rng: np.random.Generator) -> Room:
    """A room of about 6 x 4.8 x 2.7 m with a door, windows, a dining table and furniture on its walls."""
    from trimesh.util import concatenate

    width, depth, height = size = rng.uniform([5.2, 4.4, 2.4], [7.2, 5.8, 3.0])
    door = rng.uniform(0.4, 1.0)
    wide, sill, gap = rng.uniform([0.7, 0.5, 0.3], [1.2, 1.0, 0.9])
    window = rng.uniform(0.6, max(depth - 2 * wide - gap - 0.8, 0.6))  # a short wall leaves no choice
    lintel = rng.uniform(2.0, 2.3)
    meshes = [
        _box((0, 0, -WALL), (width, depth, 0)),
        _box((0, 0, height), (width, depth, height + WALL)),
        *_place(_wall(width, height, []), 0, depth, 0),
        *_place(_wall(width, height, [(width - door - 0.9, width - door, 0.0, 2.05)]), width, 0, 180),
        *_place(
            _wall(depth, height, [(x, x + wide, sill, lintel) for x in (window, window + wide + gap)]),
            width,
            depth,
            -90,
        ),
        *_place(_wall(depth, height, []), 0, 0, 90),
    ]
    # Where the middle of a piece's back stands, and the way it faces.
    places = [
        (0.0, depth * rng.uniform(0.45, 0.6), 90.0),
        (width * rng.uniform(0.24, 0.3), depth, 0.0),
        (width * rng.uniform(0.68, 0.74), depth, 0.0),
        (width * rng.uniform(0.5, 0.7), 0.0, 180.0),
    ]
    pieces: list[Callable[[np.random.Generator], list[Trimesh]]] = [_sofa, _shelf, _cabinet, _desk]
    for (x, y, yaw), piece in zip(places, rng.permutation(pieces), strict=True):
        meshes += _place(piece(rng), x, y, yaw)
    centre = np.array([width * rng.uniform(0.5, 0.56), depth * rng.uniform(0.45, 0.52)])
    meshes += _place(_dining_table(rng), *centre, rng.uniform(-15, 15))
    meshes += _place(_pendant(height), *centre, 0)
    meshes += _place(_radiator(sill - 0.1), width, depth - window - wide / 2, -90)
    meshes += _place(_floor_lamp(rng), 0.4, 0.4, 0)
    meshes += _place(_plant(rng), width - 0.45, depth - 0.45, 0)
    meshes += [_ball(rng.uniform(0.18, 0.26), (width - 0.5, rng.uniform(0.6, 1.4), 0.2))]
    return Room(concatenate(meshes), size)


def _wall(length: float, height: float, openings: Sequence[tuple[float, float, float, float]]) -> list:
    """A wall along x with its face at y = 0; each opening (x0, x1, z0, z1) is a framed recess."""
    meshes, cursor = [], 0.0
    for x0, x1, z0, z1 in openings:
        middle = (x0 + x1) / 2
        meshes += [
            _box((cursor, 0, 0), (x0, WALL, height)),
            _box((x0, 0, 0), (x1, WALL, z0)),
            _box((x0, 0, z1), (x1, WALL, height)),
            _box((x0, 0.14, z0), (x1, WALL, z1)),
            _box((middle - 0.03, 0.09, z0), (middle + 0.03, 0.14, z1)),
            _box((x0, 0.09, z0 * 0.45 + z1 * 0.55), (x1, 0.14, z0 * 0.45 + z1 * 0.55 + 0.05)),
        ]
        if z0 > 0:
            meshes.append(_box((x0 - 0.06, -0.12, z0 - 0.04), (x1 + 0.06, 0, z0)))  # a sill
        cursor = x1
    return [*meshes, _box((cursor, 0, 0), (length, WALL, height))]


def _sofa(rng: np.random.Generator) -> list:
    half = rng.uniform(0.9, 1.05)
    meshes = [
        _box((-half, -0.9, 0.06), (half, 0, 0.4)),
        _box((-half, -0.25, 0.4), (half, 0, 0.85)),
        _box((-half, -0.9, 0.4), (-half + 0.2, 0, 0.62)),
        _box((half - 0.2, -0.9, 0.4), (half, 0, 0.62)),
        *_picture(rng, 1.65),
    ]
    for x in (-half / 2, half / 2):
        meshes += _place([_ball(0.24, (0, 0, 0), squash=(1, 0.45, 1))], x, -0.36, rng.uniform(-25, 25), 0.62)
    rug = _box((-half - 0.2, -2.0, 0), (half + 0.2, -1.0, 0.015))
    low_table = [_box((-0.45, -1.6, 0.34), (0.45, -1.15, 0.38)), _box((-0.4, -1.5, 0), (0.4, -1.25, 0.34))]
    return [*meshes, rug, *low_table, _ball(0.09, (rng.uniform(-0.3, 0.3), -1.4, 0.46))]


def _shelf(rng: np.random.Generator) -> list:
    half, top = rng.uniform(0.45, 0.8), rng.uniform(1.7, 2.1)
    meshes = [_box((x - 0.015, -0.32, 0), (x + 0.015, 0, top)) for x in (-half, 0, half)]
    meshes.append(_box((-half, -0.02, 0), (half, 0, top)))
    for z in np.linspace(0.05, top, 6):
        meshes.append(_box((-half, -0.32, z - 0.02), (half, 0, z)))
    for z in np.linspace(0.05, top, 6)[:-1]:
        for left, right in ((-half, 0), (0, half)):
            x = left + 0.02
            while x < right - rng.uniform(0.08, 0.3):  # books, and a gap at their end
                thick = rng.uniform(0.03, 0.09)
                meshes.append(
                    _box((x, -rng.uniform(0.18, 0.29), z), (x + thick, 0, z + rng.uniform(0.18, 0.33)))
                )
                x += thick + 0.004
    return meshes


def _cabinet(rng: np.random.Generator) -> list:
    half, top = rng.uniform(0.65, 0.8), 0.85
    meshes = [_box((-half, -0.45, 0.1), (half, 0, top)), _box((-half + 0.05, -0.4, 0), (half - 0.05, 0, 0.1))]
    for x0, x1 in ((-half, -0.02), (0.02, half)):
        for z in (0.14, 0.38, 0.62):
            meshes.append(_box((x0 + 0.03, -0.47, z), (x1 - 0.03, -0.45, z + 0.2)))
            x = (x0 + x1) / 2
            meshes.append(_box((x - 0.08, -0.5, z + 0.09), (x + 0.08, -0.47, z + 0.11)))
    vase = rng.uniform(-0.5, 0.5)
    meshes += [
        _rod(0.09, (vase, -0.22, top), (vase, -0.22, top + 0.28)),
        _ball(0.13, (vase, -0.22, top + 0.12)),
        *_place([_box((-0.15, -0.1, 0), (0.15, 0.1, 0.22))], -vase, -0.22, rng.uniform(-30, 30), top),
    ]
    return meshes + _picture(rng, 1.7)


def _desk(rng: np.random.Generator) -> list:
    meshes = [
        _box((-0.75, -0.7, 0.71), (0.75, 0, 0.74)),
        _box((-0.75, -0.66, 0), (-0.71, -0.02, 0.71)),
        _box((0.32, -0.66, 0), (0.73, -0.02, 0.71)),
        _box((-0.32, -0.24, 0.86), (0.32, -0.2, 1.24)),
        _box((-0.03, -0.2, 0.74), (0.03, -0.16, 1.0)),
        _box((-0.13, -0.28, 0.74), (0.13, -0.1, 0.76)),
        _box((-0.22, -0.55, 0.74), (0.22, -0.4, 0.765)),
        _rod(0.04, (0.5, -0.3, 0.74), (0.5, -0.3, 0.85)),
    ]
    return meshes + _place(_chair(), rng.uniform(-0.15, 0.15), -0.95, rng.uniform(140, 220))


def _chair() -> list:
    """A chair that stands around the origin and faces -y."""
    legs = [
        _rod(0.02, (x, y, 0), (x, y, 0.95 if y > 0 else 0.44)) for x in (-0.19, 0.19) for y in (-0.19, 0.19)
    ]
    return [
        *legs,
        _box((-0.22, -0.22, 0.43), (0.22, 0.22, 0.47)),
        _box((-0.2, 0.175, 0.66), (0.2, 0.205, 0.95)),
    ]


def _dining_table(rng: np.random.Generator) -> list:
    half = rng.uniform(0.6, 1.0)
    meshes = [_box((-half, -0.45, 0.72), (half, 0.45, 0.76))]
    meshes += [
        _box((x - 0.03, y - 0.03, 0), (x + 0.03, y + 0.03, 0.72))
        for x in (0.06 - half, half - 0.06)
        for y in (-0.39, 0.39)
    ]
    seats = [(-0.35, 0.62, 0), (0.35, 0.62, 0), (-0.35, -0.62, 180), (0.35, -0.62, 180), (half + 0.3, 0, -90)]
    for x, y, yaw in rng.permutation(seats)[: rng.integers(3, 6)]:
        meshes += _place(_chair(), x, y + rng.uniform(-0.06, 0.12) * np.sign(y), yaw + rng.uniform(-20, 20))
    x, y = rng.uniform(-0.5, 0.5), rng.uniform(-0.2, 0.2)
    meshes += [_ball(0.16, (x, y, 0.84), squash=(1, 1, 0.5)), _ball(0.06, (x + 0.04, y, 0.94))]
    for x in (-0.55, 0.15, 0.6):
        meshes.append(_rod(0.035, (x, -0.28, 0.76), (x, -0.28, 0.87)))
    return meshes + _place(
        [_box((-0.16, -0.12, 0), (0.16, 0.12, 0.06))], -0.3, 0.24, rng.uniform(-40, 40), 0.76
    )


def _picture(rng: np.random.Generator, z: float) -> list:
    x, half, tall = rng.uniform(-0.3, 0.3), rng.uniform(0.35, 0.6), rng.uniform(0.22, 0.35)
    return [_box((x - half, -0.04, z - tall), (x + half, 0, z + tall))]


def _pendant(ceiling: float) -> list:
    return [_rod(0.012, (0, 0, 1.9), (0, 0, ceiling)), _ball(0.2, (0, 0, 1.8), squash=(1, 1, 0.6))]


def _radiator(top: float) -> list:
    return [_box((x, -0.11, 0.12), (x + 0.06, -0.02, top)) for x in np.arange(-0.5, 0.5, 0.09)]


def _floor_lamp(rng: np.random.Generator) -> list:
    top = rng.uniform(1.5, 1.75)
    return [
        _rod(0.15, (0, 0, 0), (0, 0, 0.03)),
        _rod(0.015, (0, 0, 0), (0, 0, top)),
        _rod(0.2, (0, 0, top), (0, 0, top + 0.26)),
    ]


def _plant(rng: np.random.Generator) -> list:
    meshes = [_rod(0.19, (0, 0, 0), (0, 0, 0.36)), _rod(0.02, (0, 0, 0.36), (0, 0, 1.1))]
    for z in np.linspace(0.6, 1.45, 9):
        leaf = _ball(0.2, (0.16, 0, 0), squash=(1, 0.45, 0.12))
        leaf.apply_transform(se3(rotation_about((0, 1, 0), rng.uniform(-60, -10)), np.zeros(3)))
        meshes += _place([leaf], 0, 0, rng.uniform(0, 360), z)
    return meshes


def _box(low: Sequence[float], high: Sequence[float]) -> "Trimesh":
    from trimesh.creation import box

    return box(bounds=[low, high])


def _rod(radius: float, bottom: Sequence[float], top: Sequence[float]) -> "Trimesh":
    from trimesh.creation import cylinder

    return cylinder(radius, segment=[bottom, top], sections=24)


def _ball(radius: float, centre: Sequence[float], squash: Sequence[float] = (1, 1, 1)) -> "Trimesh":
    from trimesh.creation import icosphere

    return icosphere(subdivisions=3).apply_scale(radius * np.array(squash)).apply_translation(centre)


def _place(meshes: list, x: float, y: float, yaw: float, z: float = 0.0) -> list:
    """The meshes turned by `yaw` degrees about the vertical and moved to (x, y, z)."""
    T = se3(rotation_about(UP, yaw), np.array([x, y, z]))
    return [mesh.apply_transform(T) for mesh in meshes]
