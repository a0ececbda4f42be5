"""Rays cast into scenes of solids, on any device.

Rays come in groups of nearly the same direction and origin: a group is intersected with the solids within
its cone alone, the nearest first.
"""

import numpy as np
import torch
from torch import Tensor

from pcreg.datasets.simulated.solids import Solids
from pcreg.kernels.raycast import Hits, first_hits
from pcreg.kernels.transfer import moved

# Numbers per intermediate tensor: many for few launches on a GPU, few for the cache of a CPU.
BUDGET = {"cuda": 2**24, "cpu": 2**17}


@torch.no_grad()
def cast(
    solids: Solids, origins: Tensor, directions: Tensor, far: float | Tensor, present: Tensor | None = None
) -> Hits:
    """Cast rays from origins (G, R, 3) along unit directions (G, R, 3), float32, up to `far` metres.

    Origins (G, 1, 3) serve all rays of a group. `far` may differ from group to group (G,). A ray that
    starts within a solid meets it from inside. `present` (G, P) bool: the solids that are there for the
    rays of a group, all if not given. Runs where the rays are; memory is bounded.
    """
    device = directions.device
    far = far if isinstance(far, Tensor) else torch.full((1,), far, device=device)
    far = far.float().expand(len(directions))
    T_unit_world = moved(torch.from_numpy(np.linalg.inv(solids.T_world_unit)[:, :3]).float(), device)
    shapes = moved(torch.from_numpy(solids.shape), device)
    group, solid, depth = _in_view(solids, origins, directions, far, present)
    return first_hits(origins, directions, far, shapes, T_unit_world, group, solid, depth)


def _bounding_radii(solids: Solids) -> np.ndarray:
    """Radius (P,) of a ball about each solid's centre that holds it."""
    x, y, z = np.moveaxis(solids.T_world_unit[:, :3, :3], 2, 0)  # (P, 3) each
    corners = [x + y + z, x + y - z, x - y + z, x - y - z]
    return np.linalg.norm(corners, axis=-1).max(0)


def _in_view(
    solids: Solids, origins: Tensor, directions: Tensor, far: Tensor, present: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Groups and solids that may meet (N,), sorted by group and then by the depth (N,) from where on.

    A ball about a solid must touch the cone about a group's rays; then a box about the solid must
    meet their pyramid.
    """
    device = directions.device
    T = moved(torch.from_numpy(solids.T_world_unit[:, :3]).float(), device)
    radius = moved(torch.from_numpy(_bounding_radii(solids)).float(), device)
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
        # Behind the origin the distance to the cone's side is too small: it keeps more than it must.
        near = (across * cosine[some] - along * sine[some] <= slack) & (along > -slack)
        near &= along - slack <= far[some, None]
        if present is not None:
            near &= present[some]
        group, solid = near.nonzero(as_tuple=True)
        group = group + first
        # How far the box about a solid extends to either side of each plane through the origin.
        *axes, centre = T[solid].unbind(-1)
        sides = planes[group]
        centre = (sides * (centre - origin[group])[:, None]).sum(-1)  # (N, 5)
        extent = spread[group, None] * sides.norm(dim=-1)
        for half in axes:
            extent = extent + (sides * half[:, None]).sum(-1).abs()
        depth = centre[:, 4] - extent[:, 4]
        kept = ((centre + extent >= 0).all(1) & (depth <= far[group])).nonzero()[:, 0]  # one wait, not three
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
