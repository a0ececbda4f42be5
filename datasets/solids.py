"""Scenes made of simple solids, and rays cast into them, in plain PyTorch on any device.

A solid is one of four unit shapes moved by an affine map, so that a ray moved the other way meets the
unit shape at the same fraction of its length. Rays come in groups that look about the same way from
about the same place: a group is tried against the solids within its cone alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

NEAR = 1e-3  # metres; a ray leaves the surface on which it starts


class Shape(IntEnum):
    """Where a point (x, y, z) of the unit shape may be."""

    BOX = 0  # |x|, |y|, |z| <= 1
    BALL = 1  # x^2 + y^2 + z^2 <= 1
    ROD = 2  # x^2 + y^2 <= 1, |z| <= 1
    CONE = 3  # x^2 + y^2 <= ((1 - z) / 2)^2, |z| <= 1: its tip at z = 1


@dataclass(frozen=True)
class Solids:
    """P solids: `shape` (P,) and `T_world_unit` (P, 4, 4) float64, an affine map each.

    `relief` (P,) says how uneven their surfaces are, in metres; none if left out. `cast` does not see it:
    it is for a sensor to add to what it measures.
    """

    shape: np.ndarray
    T_world_unit: np.ndarray
    relief: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.relief is None:
            object.__setattr__(self, "relief", np.zeros(len(self.shape)))

    def __len__(self) -> int:
        return len(self.shape)

    def placed(self, T: np.ndarray) -> Self:
        """All of them moved by T (4, 4), or each by its own T (P, 4, 4)."""
        return replace(self, T_world_unit=T @ self.T_world_unit)

    def uneven(self, relief: float) -> Self:
        """All of them with this relief in metres."""
        return replace(self, relief=np.full(len(self), relief))

    @staticmethod
    def join(parts: Iterable["Solids"]) -> "Solids":
        parts = list(parts)
        if not parts:
            return Solids(np.empty(0, np.int64), np.empty((0, 4, 4)))
        return Solids(*(np.concatenate(arrays) for arrays in zip(*map(_arrays, parts), strict=True)))


def box(low: Iterable[float], high: Iterable[float]) -> Solids:
    """The box between two corners (3,), along the axes."""
    return boxes([(*low, *high)])


def ball(radius: float, centre: Iterable[float], squash: Iterable[float] = (1, 1, 1)) -> Solids:
    """A ball, or with `squash` an ellipsoid along the axes."""
    return balls([(*centre, *(radius * factor for factor in squash))])


def rod(radius: float, bottom: Iterable[float], top: Iterable[float]) -> Solids:
    """A cylinder between the centres of its ends."""
    return rods([(radius, *bottom, *top)])


def cone(radius: float, bottom: Iterable[float], tip: Iterable[float]) -> Solids:
    """A cone from the centre of its base to its tip."""
    return cones([(radius, *bottom, *tip)])


def boxes(rows: ArrayLike) -> Solids:
    """Boxes along the axes, one per row: the lower corner and the upper one (N, 6)."""
    low, high = np.asarray(rows, float).reshape(-1, 2, 3).swapaxes(0, 1)
    return _affine(Shape.BOX, (high - low)[:, :, None] / 2 * np.eye(3), (low + high) / 2)


def balls(rows: ArrayLike) -> Solids:
    """Ellipsoids along the axes, one per row: the centre and the three radii (N, 6)."""
    centre, radii = np.asarray(rows, float).reshape(-1, 2, 3).swapaxes(0, 1)
    return _affine(Shape.BALL, radii[:, :, None] * np.eye(3), centre)


def rods(rows: ArrayLike) -> Solids:
    """Cylinders, one per row: the radius and the centres of both ends (N, 7)."""
    return _along(Shape.ROD, rows)


def cones(rows: ArrayLike) -> Solids:
    """Cones, one per row: the radius, the centre of the base and the tip (N, 7)."""
    return _along(Shape.CONE, rows)


@dataclass(frozen=True)
class Hits:
    """What rays (G, R) met first."""

    distance: Tensor  # (G, R) float32, metres, infinite if nothing
    cosine: Tensor  # (G, R) float32, of the angle between ray and normal, not negative
    solid: Tensor  # (G, R) int64, -1 if nothing


@torch.no_grad()
def cast(solids: Solids, origins: Tensor, directions: Tensor, far: float) -> Hits:
    """Cast rays from origins (G, R, 3) along unit directions (G, R, 3), float32, up to `far` metres.

    A ray that starts within a solid meets it from inside. Runs where the rays are; memory is bounded.
    """
    device = directions.device
    T_unit_world = torch.from_numpy(np.linalg.inv(solids.T_world_unit)[:, :3]).float().to(device)
    centre = torch.from_numpy(solids.T_world_unit[:, :3, 3]).float().to(device)
    reach = torch.from_numpy(_reach(solids)).float().to(device)
    G, R, _ = directions.shape
    # Rays times solids per intermediate tensor: few launches on a GPU; elsewhere what a cache holds.
    budget = 2**24 if device.type == "cuda" else 2**17
    distance = torch.full((G, R), torch.inf, device=device)
    met = torch.full((G, R), -1, dtype=torch.int64, device=device)
    in_cone = _in_cone(origins, directions, centre, reach, far)  # (G, P)
    for shape in Shape:
        index = torch.from_numpy(np.flatnonzero(solids.shape == shape)).to(device)
        tried = in_cone[:, index]
        counts = tried.sum(1)
        # Groups with as many solids together, so that little is padded.
        order = torch.argsort(counts)
        most = counts[order].tolist()
        end = G
        while end > 0 and most[end - 1] > 0:
            step = max(1, budget // (R * most[end - 1]))
            groups = order[max(0, end - step) : end]
            found = torch.argsort(~tried[groups], dim=1, stable=True)[
                :, : most[end - 1]
            ]  # those in the cone first
            exists = torch.gather(tried[groups], 1, found)
            candidates = index[found]
            t = _first_meeting(shape, T_unit_world[candidates], origins[groups], directions[groups])
            t = torch.where(exists[:, None], t, torch.inf)
            nearest = t.min(2)
            closer = nearest.values < distance[groups]
            distance[groups] = torch.where(closer, nearest.values, distance[groups])
            solid = torch.gather(candidates, 1, nearest.indices)
            met[groups] = torch.where(closer, solid, met[groups])
            end -= len(groups)
    met[distance > far] = -1
    distance[distance > far] = torch.inf
    normal = _normals(solids, T_unit_world, origins, directions, distance, met)
    return Hits(distance, (normal * directions).sum(-1).abs(), met)


def _arrays(solids: Solids) -> tuple[np.ndarray, ...]:
    return solids.shape, solids.T_world_unit, solids.relief


def _affine(shape: Shape, linear: np.ndarray, centre: np.ndarray) -> Solids:
    T = np.zeros((len(centre), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = linear, centre, 1
    return Solids(np.full(len(centre), shape, np.int64), T)


def _along(shape: Shape, rows: ArrayLike) -> Solids:
    rows = np.asarray(rows, float).reshape(-1, 7)
    radius, bottom, top = rows[:, :1], rows[:, 1:4], rows[:, 4:]
    half = (top - bottom) / 2
    axis = half / np.linalg.norm(half, axis=1, keepdims=True)
    across = np.cross(axis, np.eye(3)[np.abs(axis).argmin(1)])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    linear = np.stack([radius * across, radius * np.cross(axis, across), half], 2)
    return _affine(shape, linear, (bottom + top) / 2)


def _reach(solids: Solids) -> np.ndarray:
    """Radius (P,) of a ball about each solid's centre that holds it."""
    x, y, z = np.moveaxis(solids.T_world_unit[:, :3, :3], 2, 0)  # (P, 3) each
    corners = [x + y + z, x + y - z, x - y + z, x - y - z]
    return np.linalg.norm(corners, axis=-1).max(0)


def _in_cone(origins: Tensor, directions: Tensor, centre: Tensor, reach: Tensor, far: float) -> Tensor:
    """Whether a ray of a group may meet a solid (G, P)."""
    origin = origins.mean(1)
    spread = (origins - origin[:, None]).norm(dim=-1).amax(1)
    axis = torch.nn.functional.normalize(directions.mean(1), dim=-1)
    half = torch.arccos((directions * axis[:, None]).sum(-1).clamp(-1, 1)).amax(1)
    to_centre = centre[None] - origin[:, None]
    away = to_centre.norm(dim=-1)
    reach = reach[None] + spread[:, None] + 1e-3
    angle = torch.arccos(((to_centre * axis[:, None]).sum(-1) / away.clamp(min=1e-9)).clamp(-1, 1))
    inside = away <= reach
    within = torch.arcsin((reach / away.clamp(min=1e-9)).clamp(max=1))
    return (inside | (angle <= half[:, None] + within + 1e-3)) & (away - reach <= far)


def _first_meeting(shape: Shape, T_unit_world: Tensor, origins: Tensor, directions: Tensor) -> Tensor:
    """Distances (G, R, P) along rays (G, R, 3) to solids (G, P, 3, 4) of one shape, infinite for a miss."""
    A, b = T_unit_world[..., :3], T_unit_world[..., 3]
    G, P = b.shape[:2]
    A = A.reshape(G, 3 * P, 3).mT
    d = (directions @ A).unflatten(2, (P, 3))
    o = (origins @ A).unflatten(2, (P, 3)) + b[:, None]
    enter, leave = _crossing(shape, *o.unbind(-1), *d.unbind(-1))
    t = torch.where(enter > NEAR, enter, leave)
    return torch.where((enter <= leave) & (t > NEAR), t, torch.inf)


def _crossing(shape: Shape, x, y, z, dx, dy, dz) -> tuple[Tensor, Tensor]:
    """Where a line enters and leaves a unit shape; not a number, or in the wrong order, for a miss."""
    match shape:
        case Shape.BOX:
            slabs = [_slab(x, dx), _slab(y, dy), _slab(z, dz)]
            enter = torch.maximum(torch.maximum(slabs[0][0], slabs[1][0]), slabs[2][0])
            leave = torch.minimum(torch.minimum(slabs[0][1], slabs[1][1]), slabs[2][1])
            return enter, leave
        case Shape.BALL:
            return _roots(dx * dx + dy * dy + dz * dz, x * dx + y * dy + z * dz, x * x + y * y + z * z - 1)
        case Shape.ROD:
            enter, leave = _roots(dx * dx + dy * dy, x * dx + y * dy, x * x + y * y - 1)
            low, high = _slab(z, dz)
            return torch.maximum(enter, low), torch.minimum(leave, high)
        case Shape.CONE:
            return _cone(x, y, z, dx, dy, dz)


def _slab(x: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    """Where x + t dx crosses -1 and 1, in order."""
    inverse = 1 / torch.where(dx.abs() < 1e-9, 1e-9, dx)
    one, two = (-1 - x) * inverse, (1 - x) * inverse
    return torch.minimum(one, two), torch.maximum(one, two)


def _roots(a: Tensor, half_b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The roots of a t^2 + 2 half_b t + c, a >= 0, in order; all of the line or none where a is 0."""
    a = a.clamp(min=1e-12)
    root = torch.sqrt(half_b * half_b - a * c)  # not a number for a miss, which compares as false
    return (-half_b - root) / a, (-half_b + root) / a


def _cone(x, y, z, dx, dy, dz) -> tuple[Tensor, Tensor]:
    """The lower nappe alone: the line must cross it within -1 <= z <= 1."""
    s, ds = (1 - z) / 2, -dz / 2  # the radius at the height of the point
    a = dx * dx + dy * dy - ds * ds
    half_b = x * dx + y * dy - s * ds
    c = x * x + y * y - s * s
    root = torch.sqrt((half_b * half_b - a * c).clamp(min=0))
    a = torch.where(a.abs() < 1e-12, 1e-12, a)
    one, two = (-half_b - root) / a, (-half_b + root) / a
    base = (-1 - z) / torch.where(dz.abs() < 1e-9, 1e-9, dz)
    radius = (x + base * dx) ** 2 + (y + base * dy) ** 2
    missed = half_b * half_b - a * c < 0
    meetings = [torch.where(missed | ((z + t * dz).abs() > 1), torch.nan, t) for t in (one, two)] + [
        torch.where(radius <= 1, base, torch.nan)
    ]
    low = torch.stack([t.nan_to_num(torch.inf) for t in meetings]).amin(0)
    high = torch.stack([t.nan_to_num(-torch.inf) for t in meetings]).amax(0)
    return low, high


def _normals(
    solids: Solids, T_unit_world: Tensor, origins: Tensor, directions: Tensor, distance: Tensor, met: Tensor
) -> Tensor:
    """Unit normals (G, R, 3) where rays met solids; zero where they met none."""
    hit = met >= 0
    T = T_unit_world[met.clamp(min=0)]
    at = origins + torch.where(hit, distance, 0)[..., None] * directions
    p = (T[..., :3] @ at[..., None])[..., 0] + T[..., 3]
    shape = torch.from_numpy(solids.shape).to(met.device)[met.clamp(min=0)][..., None]
    x, y, z = p.unbind(-1)
    nothing = torch.zeros_like(x)
    face = torch.nn.functional.one_hot(p.abs().argmax(-1), 3) * p
    radial = torch.stack([x, y, nothing], -1)
    flat = torch.stack([nothing, nothing, z.sign()], -1)
    side = torch.where((x * x + y * y > z * z)[..., None], radial, flat)
    slope = torch.stack([x, y, (1 - z) / 4], -1)
    lateral = torch.where((z < -0.999)[..., None], flat, slope)
    local = torch.where(shape == Shape.BOX, face, p)
    local = torch.where(shape == Shape.ROD, side, local)
    local = torch.where(shape == Shape.CONE, lateral, local)
    normal = torch.nn.functional.normalize((T[..., :3].mT @ local[..., None])[..., 0], dim=-1)
    return torch.where(hit[..., None], normal, 0)
