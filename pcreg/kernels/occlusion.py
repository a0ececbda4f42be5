"""Which points of a surface would be hidden from other places, and which would be seen edge-on."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from pcreg.kernels.range_image import OcclusionLimits


def hidden_and_edge_on(places: Tensor, points: Tensor, normals: Tensor, limits: OcclusionLimits) -> Tensor:
    """Of each of the places (P, 3) how many points (N, 3) with normals (N, 3) are hidden, or seen edge-on.

    (P, 2) int32, no point being both; all float64, contiguous and in metres. A point is hidden if its cell of
    the range image and all around it on its face have a nearer point. How much the range of a slanted surface
    changes within these cells is allowed for.
    """
    if points.is_cuda:
        from pcreg.kernels.triton import occlusion

        return occlusion.hidden_and_edge_on(places, points, normals, limits)
    P, F = len(places), limits.cells
    rays = points.T[:, None] - places.T[:, :, None]  # (3, P, N)
    distance = _dot(rays, rays).sqrt()
    cosine = _dot(rays, normals.T[:, None]).abs() / distance.clamp(min=1e-9)
    cell = _cube_cells(rays, F).view(-1)
    nearest = distance.new_full((P * 6 * F**2,), torch.inf)
    nearest = nearest.scatter_reduce(0, cell, distance.view(-1), "amin")
    # A cell at the edge of a face has neighbours of infinite range, as everything beyond the padding has
    images = pad(nearest.view(P, 6, F, F), (1, 1, 1, 1), value=torch.inf)
    occluder = max_pool2d(images, 3, stride=1).view(-1)[cell].view_as(distance)
    slope = (1 - cosine.clamp(max=1.0) ** 2).sqrt() / cosine.clamp(min=limits.min_cosine)
    behind = distance - limits.margin - distance * limits.width * slope > occluder
    edge_on = cosine < limits.min_cosine
    return torch.stack([(behind & ~edge_on).sum(1), edge_on.sum(1)], 1).int()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Products of vectors (3, ...)."""
    return (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]


def _cube_cells(rays: Tensor, cells: int) -> Tensor:
    """The cell (P, N) int64 of rays (3, P, N) on P cubes, counted by cube, face, row and column.

    The cells of a cube have about equal angles.
    """
    axis = rays.abs().argmax(0)
    main, *others = (rays.gather(0, ((axis + shift) % 3)[None])[0] for shift in range(3))
    divisor = main.abs().clamp(min=1e-9)
    cell = 6 * torch.arange(len(axis), device=rays.device)[:, None] + 2 * axis + (main > 0)
    for other in others:
        angle = torch.atan(other / divisor)
        within = ((angle / torch.pi * 2 + 0.5) * cells).long().clamp(0, cells - 1)
        cell = cell * cells + within
    return cell
