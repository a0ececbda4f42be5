"""First intersections of rays with solids.

A ray is moved into the frame of a solid's unit shape; the ray parameter t of an intersection stays the same.
"""

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from pcreg.kernels.cells import counts_of_sorted

MIN_DISTANCE = 1e-3  # metres: a ray does not meet the surface on which it starts
BLOCK_PAIRS = 2**17  # pairs of a ray and a solid that the CPU intersects at a time, in its cache
ROUNDS = ((0, 12), (12, 40), (40, 120), (120, 2**31))  # ranks of solids: near ones hide later ones


class Shape(IntEnum):
    """Unit shapes of solids, as sets of points (x, y, z)."""

    BOX = 0  # |x|, |y|, |z| <= 1
    BALL = 1  # x^2 + y^2 + z^2 <= 1
    ROD = 2  # x^2 + y^2 <= 1, |z| <= 1
    CONE = 3  # x^2 + y^2 <= ((1 - z) / 2)^2, |z| <= 1: its tip at z = 1


@dataclass(frozen=True)
class Hits:
    """First intersections of rays (G, R)."""

    distance: Tensor  # (G, R) float32, metres, infinite without a hit
    cosine: Tensor  # (G, R) float32, of the angle between ray and normal, not negative
    solid: Tensor  # (G, R) int64, -1 without a hit


def first_hits(
    origins: Tensor,
    directions: Tensor,
    far: Tensor,
    shapes: Tensor,
    T_unit_world: Tensor,
    group: Tensor,
    solid: Tensor,
    depth: Tensor,
) -> Hits:
    """Intersect G groups of R rays with the solids near them. A ray from within a solid meets it from inside.

    Args:
        origins: (G, R, 3) or (G, 1, 3) float32, metres, like all lengths.
        directions: (G, R, 3) float32, of unit length.
        far: (G,) float32, the largest distance of a hit.
        shapes: (P,) int64, the Shape of each solid.
        T_unit_world: (P, 3, 4) float32, from the world to the unit shape of each solid.
        group: (N,) int64: rays of group[n] may meet solid[n]. Sorted by group, then by depth.
        solid: (N,) int64.
        depth: (N,) float32, a lower bound of the distance from the group's origins to solid[n].
    """
    if directions.is_cuda:
        from pcreg.kernels.triton.raycast import first_hits as by_kernel

        return Hits(*by_kernel(origins, directions, far, shapes, T_unit_world, group, solid, depth))
    G, R, _ = directions.shape
    device = directions.device
    distance = torch.full((G, R), torch.inf, device=device)
    met = torch.full((G, R), -1, dtype=torch.int64, device=device)
    rank = torch.arange(len(group), device=device) - _starts(group, G)[0][group]
    for first, last in ROUNDS:
        hidden = torch.minimum(distance.amax(1), far)[group] < depth
        due = (rank >= first) & (rank < last) & ~hidden
        for shape in Shape:
            chosen = (due & (shapes[solid] == shape)).nonzero()[:, 0]
            _intersect(shape, group[chosen], solid[chosen], T_unit_world, origins, directions, distance, met)
    beyond = distance > far[:, None]
    met = torch.where(beyond, -1, met)
    distance = torch.where(beyond, torch.inf, distance)
    normal = _normals(shapes, T_unit_world, origins, directions, distance, met)
    return Hits(distance, (normal * directions).sum(-1).abs(), met)


def _intersect(
    shape: Shape,
    group: Tensor,
    solid: Tensor,
    T_unit_world: Tensor,
    origins: Tensor,
    directions: Tensor,
    distance: Tensor,
    met: Tensor,
) -> None:
    """Intersect rays with solids (N,) of one shape, in order of their groups (N,), and keep nearer hits."""
    G, R, _ = directions.shape
    start, count = _starts(group, G)
    # Blocks of groups with similar numbers of solids need little padding.
    order = torch.argsort(count)
    counts = count[order].tolist()
    end = G
    while end > 0 and counts[end - 1] > 0:
        width = counts[end - 1]
        groups = order[max(0, end - max(1, BLOCK_PAIRS // (R * width))) : end]
        slot = torch.arange(width, device=group.device)
        candidates = solid[(start[groups, None] + slot).clamp(max=len(solid) - 1)]
        t = _first_meeting(shape, T_unit_world[candidates], origins[groups], directions[groups])
        t = torch.where((slot < count[groups, None])[..., None], t, torch.inf)
        nearest = t.min(1)
        closer = nearest.values < distance[groups]
        distance[groups] = torch.where(closer, nearest.values, distance[groups])
        met[groups] = torch.where(closer, candidates.gather(1, nearest.indices), met[groups])
        end -= len(groups)


def _starts(group: Tensor, G: int) -> tuple[Tensor, Tensor]:
    """The first place (G,) and the count (G,) of each of G groups in a sorted list (N,)."""
    count = counts_of_sorted(group, G)
    return count.cumsum(0) - count, count


def _first_meeting(shape: Shape, T_unit_world: Tensor, origins: Tensor, directions: Tensor) -> Tensor:
    """Distances (G, P, R) along rays (G, R, 3) to solids (G, P, 3, 4) of one shape, infinite for a miss."""
    G, P = T_unit_world.shape[:2]
    rows = T_unit_world[..., :3].transpose(1, 2).reshape(G, 3 * P, 3)
    d = (rows @ directions.mT).unflatten(1, (3, P))
    o = _moved(T_unit_world[:, :, None], origins[:, None])
    enter, leave = _crossing(shape, *o.unbind(-1), *d.unbind(1))
    t = torch.where(enter > MIN_DISTANCE, enter, leave)
    return torch.where((enter <= leave) & (t > MIN_DISTANCE), t, torch.inf)


def _moved(T: Tensor, points: Tensor) -> Tensor:
    """Points (..., 3) moved by one T (..., 3, 4) each; batched products of small matrices take longer."""
    x, y, z = points[..., None].unbind(-2)
    return T[..., 0] * x + T[..., 1] * y + T[..., 2] * z + T[..., 3]


def _crossing(shape: Shape, x, y, z, dx, dy, dz) -> tuple[Tensor, Tensor]:
    """The t at which a line enters and leaves a unit shape; NaN, or in the wrong order, for a miss."""
    match shape:
        case Shape.BOX:
            (x_low, x_high), (y_low, y_high), (z_low, z_high) = _slab(x, dx), _slab(y, dy), _slab(z, dz)
            enter = torch.maximum(torch.maximum(x_low, y_low), z_low)
            return enter, torch.minimum(torch.minimum(x_high, y_high), z_high)
        case Shape.BALL:
            return _roots(dx * dx + dy * dy + dz * dz, x * dx + y * dy + z * dz, x * x + y * y + z * z - 1)
        case Shape.ROD:
            enter, leave = _roots(dx * dx + dy * dy, x * dx + y * dy, x * x + y * y - 1)
            low, high = _slab(z, dz)
            return torch.maximum(enter, low), torch.minimum(leave, high)
        case Shape.CONE:
            return _cone(x, y, z, dx, dy, dz)


def _slab(x: Tensor, dx: Tensor) -> tuple[Tensor, Tensor]:
    """The t at which x + t dx crosses -1 and 1, in order."""
    inverse = 1 / torch.where(dx.abs() < 1e-9, 1e-9, dx)
    one, two = (-1 - x) * inverse, (1 - x) * inverse
    return torch.minimum(one, two), torch.maximum(one, two)


def _roots(a: Tensor, half_b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The roots of a t^2 + 2 half_b t + c, a >= 0, in order; all of the line or none if a is 0."""
    a = a.clamp(min=1e-12)
    root = torch.sqrt(half_b * half_b - a * c)  # NaN for a miss: comparisons with NaN are false
    return (-half_b - root) / a, (-half_b + root) / a


def _cone(x, y, z, dx, dy, dz) -> tuple[Tensor, Tensor]:
    """Crossings of the lower nappe, within -1 <= z <= 1, and of the base."""
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
    meetings = [torch.where(missed | ((z + t * dz).abs() > 1), torch.nan, t) for t in (one, two)]
    meetings.append(torch.where(radius <= 1, base, torch.nan))
    low = torch.stack([t.nan_to_num(torch.inf) for t in meetings]).amin(0)
    high = torch.stack([t.nan_to_num(-torch.inf) for t in meetings]).amax(0)
    return low, high


def _normals(
    shapes: Tensor, T_unit_world: Tensor, origins: Tensor, directions: Tensor, distance: Tensor, met: Tensor
) -> Tensor:
    """Unit normals (G, R, 3) of the solids at the hits; zero without a hit."""
    hit = met >= 0
    T = T_unit_world[met.clamp(min=0)]
    at = origins + torch.where(hit, distance, 0)[..., None] * directions
    p = _moved(T, at)
    shape = shapes[met.clamp(min=0)][..., None]
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
    normal = torch.nn.functional.normalize((T[..., :3] * local[..., None]).sum(-2), dim=-1)
    return torch.where(hit[..., None], normal, 0)
