"""The linear equations of point-to-plane ICP (Chen and Medioni, 1992; Low, 2004)."""

import torch
from torch import Tensor

from pcreg.kernels.nearest import nearest_points


def equations(source: Tensor, target: Tensor, normals: Tensor, T: Tensor, max_distance: float) -> Tensor:
    """Rows (N, 7) of a small motion's equations: six coefficients, of the rotation first, and the residual.

    Of each point of source (N, 3), moved by T (4, 4), and the plane through the nearest point of target
    (M, 3) with its normal (M, 3). Zeros where that one is not closer than `max_distance`. All float64.
    """
    if source.is_cuda:
        from pcreg.kernels.triton.point_to_plane import equations as by_kernel

        return by_kernel(source, target, normals, T, max_distance)
    points = source @ T[:3, :3].T + T[:3, 3]
    distance, partner = nearest_points(points, target)
    normal = normals[partner]
    residual = ((target[partner] - points) * normal).sum(1, keepdim=True)
    rows = torch.cat([torch.linalg.cross(points, normal), normal, residual], 1)
    return torch.where((distance < max_distance)[:, None], rows, 0.0)
