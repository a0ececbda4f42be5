"""Solids, unit shapes moved by affine maps, and rays cast on any device.

Rays come in groups of nearly the same direction and origin: a group is intersected only with the solids
within its cone, the nearest first.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pcreg.datasets.simulated.draws import Device
from pcreg.geometry.se3 import lengths
from pcreg.kernels.raycast import Hits, Shape, first_hits
from pcreg.kernels.transfer import to_device

AXES = np.eye(3)
NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # axes after and before x, y, z, cyclically

# Numbers per intermediate tensor: large tensors need few launches on a GPU, small ones fit a CPU's cache.
BUDGET = {"cuda": 2**24, "cpu": 2**17}


class Material(IntEnum):
    """Properties of a surface that a laser hits; pcreg.datasets.simulated.outdoor.lidar uses them."""

    MATT = 0
    GLASS = 1
    DARK = 2  # black paint
    LEAVES = 3  # a ray may pass between them


@dataclass(frozen=True)
class Solids:
    """P solids: unit shapes, each moved by an affine map."""

    shape: np.ndarray  # (P,) int64, of pcreg.kernels.raycast.Shape
    T_world_unit: np.ndarray  # (P, 4, 4) float64
    relief: np.ndarray  # (P,) metres, unevenness of the surface: depth cameras add it, `cast` ignores it
    material: np.ndarray  # (P,) int64, of Material

    def __len__(self) -> int:
        return len(self.shape)

    def placed(self, T: np.ndarray) -> "Solids":
        """The solids moved by T (4, 4), or each by its own T (P, 4, 4)."""
        return replace(self, T_world_unit=T @ self.T_world_unit)

    def uneven(self, relief: float) -> "Solids":
        """The solids with this relief in metres."""
        return replace(self, relief=np.full(len(self), relief))

    def of(self, material: Material) -> "Solids":
        """The solids, made of this material."""
        return replace(self, material=np.full(len(self), material, np.int64))

    def where(self, kept: np.ndarray) -> "Solids":
        """The solids that the mask `kept` (P,) selects."""
        return Solids(*(column[kept] for column in vars(self).values()))

    def sheared(self, axis: int, along: int, slope: float, fixed: float = 0.0) -> "Solids":
        """The solids after a shear: x[axis] grows by slope * (x[along] - fixed)."""
        T = np.eye(4)
        T[axis, along], T[axis, 3] = slope, -slope * fixed
        return self.placed(T)

    def copies(self, T: np.ndarray) -> "Solids":
        """Copies moved by each of T (N, 4, 4): N * P solids, one copy after another."""
        rows, moved = np.tile(np.arange(len(self)), len(T)), T[:, None] @ self.T_world_unit
        return Solids(self.shape[rows], moved.reshape(-1, 4, 4), self.relief[rows], self.material[rows])

    @staticmethod
    def join(*parts: "Solids") -> "Solids":
        columns = zip(*(vars(part).values() for part in parts or (boxes([]),)), strict=True)
        return Solids(*map(np.concatenate, columns))


# These functions take a table, or its columns as numbers and arrays (N,), as in `balls(x, y, 2, 1, 1, 0.5)`


def boxes(*rows: ArrayLike) -> Solids:
    """Boxes along the axes: the lower corner and the upper one (N, 6)."""
    rows = _table(rows, 6)
    low, high = rows[:, :3].copy(), rows[:, 3:].copy()
    return _along_axes(Shape.BOX, (high - low) / 2, (low + high) / 2)


def balls(*rows: ArrayLike) -> Solids:
    """Ellipsoids along the axes: the centre and the three radii (N, 6)."""
    rows = _table(rows, 6)
    return _along_axes(Shape.BALL, rows[:, 3:], rows[:, :3])


def rods(*rows: ArrayLike) -> Solids:
    """Cylinders: the radius and the centres of both ends (N, 7)."""
    return _along(Shape.ROD, _table(rows, 7))


def cones(*rows: ArrayLike) -> Solids:
    """Cones: the radius, the centre of the base and the tip (N, 7)."""
    return _along(Shape.CONE, _table(rows, 7))


def poles(radius: ArrayLike, x: ArrayLike, y: ArrayLike, low: ArrayLike, high: ArrayLike) -> Solids:
    """Upright cylinders from z = low to z = high."""
    return rods(radius, x, y, low, x, y, high)


def tube(radius: float, line: np.ndarray) -> Solids:
    """Cylinders along a line of points (N, 3): N - 1 of them."""
    return rods(radius, *line[:-1].T, *line[1:].T)


# A scene calls these functions hundreds of times for a few solids each, so they make few calls of NumPy.
# Columns are copied first, as calls on a part of each row take four times as long.


def _table(rows: tuple[ArrayLike, ...], width: int) -> np.ndarray:
    """The given table (N, width), or one made of `width` columns."""
    if len(rows) == 1 or not any(isinstance(column, np.ndarray) for column in rows):
        return np.asarray(rows[0] if len(rows) == 1 else rows, float).reshape(-1, width)
    table = np.empty((np.broadcast(*rows).size, width))
    for number, column in enumerate(rows):
        table[:, number] = column
    return table


def _flat(shape: Shape, centre: np.ndarray) -> Solids:
    """Solids at centres (N, 3) with axes (N, 3, 3) of zero, which are set later."""
    T = np.zeros((len(centre), 4, 4))
    T[:, :3, 3], T[:, 3, 3] = centre, 1
    count = len(centre)
    return Solids(np.full(count, int(shape), np.int64), T, np.zeros(count), np.zeros(count, np.int64))


def _along_axes(shape: Shape, size: np.ndarray, centre: np.ndarray) -> Solids:
    solids = _flat(shape, centre)
    solids.T_world_unit.reshape(-1, 16)[:, :11:5] = size  # the first three of the diagonal
    return solids


def _along(shape: Shape, rows: np.ndarray) -> Solids:
    radius, bottom, top = rows[:, :1], rows[:, 1:4].copy(), rows[:, 4:].copy()
    half = (top - bottom) / 2
    axis = half / lengths(half)[:, None]
    across = _cross(axis, AXES.take(np.abs(axis).argmin(1), 0))
    across *= radius / lengths(across)[:, None]
    solids = _flat(shape, (bottom + top) / 2)
    for column, direction in enumerate((across, _cross(axis, across), half)):
        solids.T_world_unit[:, :3, column] = direction
    return solids


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products of rows (N, 3); np.cross takes many times as long for few rows."""
    return a.take(NEXT, 1) * b.take(LAST, 1) - a.take(LAST, 1) * b.take(NEXT, 1)


def on_device(array: np.ndarray, device: Device) -> Tensor:
    """An array as a tensor on a device, float64 as float32."""
    tensor = torch.from_numpy(array)
    return to_device(tensor.float() if tensor.is_floating_point() else tensor, device)


@torch.no_grad()
def cast(
    solids: Solids, origins: Tensor, directions: Tensor, far: float | Tensor, present: Tensor | None = None
) -> Hits:
    """Cast rays from origins (G, R, 3) along unit directions (G, R, 3), float32, up to `far` metres.

    Origins (G, 1, 3) serve all rays of a group. `far` may differ from group to group (G,). A ray that
    starts within a solid meets it from inside. `present` (G, P) bool has the solids that the rays of a
    group can meet, by default all. Runs on the device of the rays, in bounded memory.
    """
    device = directions.device
    far = torch.as_tensor(far, dtype=torch.float32, device=device).expand(len(directions))
    T_unit_world = on_device(np.linalg.inv(solids.T_world_unit)[:, :3], device)
    shapes = on_device(solids.shape, device)
    group, solid, depth = _in_view(solids, origins, directions, far, present)
    return first_hits(origins, directions, far, shapes, T_unit_world, group, solid, depth)


def _bounding_radii(solids: Solids) -> np.ndarray:
    """Radius (P,) of the ball about each solid's centre that encloses the solid."""
    x, y, z = np.moveaxis(solids.T_world_unit[:, :3, :3], 2, 0)  # (P, 3) each
    corners = [x + y + z, x + y - z, x - y + z, x - y - z]
    return np.linalg.norm(corners, axis=-1).max(0)


def _in_view(
    solids: Solids, origins: Tensor, directions: Tensor, far: Tensor, present: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Groups and solids (N,) that may meet, sorted by group, then by depth (N,)."""
    device = directions.device
    T, radius = (on_device(each, device) for each in (solids.T_world_unit[:, :3], _bounding_radii(solids)))
    origin = origins.mean(1)
    spread = (origins - origin[:, None]).norm(dim=-1).amax(1) + 1e-3
    axis = torch.nn.functional.normalize(directions.mean(1), dim=-1)
    cosine = (directions * axis[:, None]).sum(-1).amin(1, keepdim=True).clamp(-1, 1)
    sine = torch.sqrt(1 - cosine * cosine)
    planes = _pyramid(axis, directions)  # (G, 5, 3)
    found = []
    groups = max(1, BUDGET[device.type] // max(1, len(T)))
    for first in range(0, len(origin), groups):
        some = slice(first, first + groups)
        along, away = 0.0, 0.0
        for k in range(3):
            to_centre = T[:, k, 3] - origin[some, k, None]
            along = along + to_centre * axis[some, k, None]
            away = away + to_centre.square()
        across = torch.sqrt((away - along * along).clamp(min=0))
        slack = radius + spread[some, None]
        # Behind the origin the distance to the cone is underestimated, so that some solids too many are kept.
        near = (across * cosine[some] - along * sine[some] <= slack) & (along > -slack)
        near &= along - slack <= far[some, None]
        if present is not None:
            near &= present[some]
        group, solid = near.nonzero(as_tuple=True)
        group = group + first
        # Half widths of the box about a solid along the normals of five planes through the origin
        *axes, centre = T[solid].unbind(-1)
        sides = planes[group]
        centre = (sides * (centre - origin[group])[:, None]).sum(-1)  # (N, 5)
        extent = spread[group, None] * sides.norm(dim=-1)
        for half in axes:
            extent = extent + (sides * half[:, None]).sum(-1).abs()
        depth = centre[:, 4] - extent[:, 4]
        # A single mask, so that the host waits for the device only once
        kept = ((centre + extent >= 0).all(1) & (depth <= far[group])).nonzero()[:, 0]
        found.append((group[kept], solid[kept], depth[kept]))
    group, solid, depth = (torch.cat(parts) for parts in zip(*found, strict=True))
    order = torch.argsort(depth)
    order = order[torch.argsort(group[order], stable=True)]
    return group[order], solid[order], depth[order]


def _pyramid(axis: Tensor, directions: Tensor) -> Tensor:
    """Inward normals (G, 5, 3) of four planes about each group's rays, and their axis."""
    up = torch.eye(3, device=axis.device)[torch.where(axis[:, 2].abs() < 0.9, 2, 0)]
    u = torch.nn.functional.normalize(torch.linalg.cross(up, axis), dim=-1)
    v = torch.linalg.cross(axis, u)
    forward = (directions * axis[:, None]).sum(-1).clamp(min=1e-3)
    planes = []
    for side in (u, v):
        slope = (directions * side[:, None]).sum(-1) / forward
        planes += [side - slope.amin(1)[:, None] * axis, slope.amax(1)[:, None] * axis - side]
    return torch.stack([*planes, axis], 1)
