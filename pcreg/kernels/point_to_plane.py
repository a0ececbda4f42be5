"""Point-to-plane ICP (Chen and Medioni, 1992; Low, 2004): its equations, and iterations without the host."""

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from pcreg.kernels.nearest import nearest_points


class Outcome(IntEnum):
    """Of iterations."""

    GOING_ON = 0
    CONVERGED = 1
    UNDETERMINED = 2  # some direction: the last step was not taken


class Limits(NamedTuple):
    """Of an iteration."""

    max_distance: float  # metres, from a point to the one on whose plane it shall lie
    radius: float  # metres, that take radians to metres
    min_step: float  # metres: with a shorter step they converged
    max_condition: float  # of the equations A, as trace(A) trace(A^-1): from it on they are undetermined


def normal_equations(
    source: Tensor, target: Tensor, normals: Tensor, T: Tensor, max_distance: float
) -> Tensor:
    """J^T J (7, 7) of the equations J: six coefficients, of the rotation first, and the residual.

    Of points of source (N, 3), moved by T (4, 4), and the planes through the nearest points of target (M, 3)
    with their normals (M, 3), where those are closer than `max_distance` metres. All float64.
    """
    if source.is_cuda:
        from pcreg.kernels.triton import point_to_plane

        return point_to_plane.normal_equations(source, target, normals, T, max_distance)
    points = source @ T[:3, :3].T + T[:3, 3]
    distance, partner = nearest_points(points, target)
    normal = normals[partner]
    residual = ((target[partner] - points) * normal).sum(1, keepdim=True)
    rows = torch.cat([torch.linalg.cross(points, normal), normal, residual], 1)[distance < max_distance]
    return rows.T @ rows


def iterate(
    source: Tensor, target: Tensor, normals: Tensor, state: Tensor, limits: Limits, count: int
) -> Tensor:
    """The `state` after up to `count` iterations more, which is not changed once they have ended.

    (18,): T (4, 4) by rows, its Outcome, and how many were taken. The clouds are as above. On a GPU nothing
    is waited for.
    """
    if source.is_cuda:
        from pcreg.kernels.triton import point_to_plane

        return point_to_plane.iterate(source, target, normals, state, limits, count)
    T, (outcome, taken) = state[:16].view(4, 4), state[16:].tolist()
    for _ in range(count):
        if outcome != Outcome.GOING_ON:
            break
        sums = normal_equations(source, target, normals, T, limits.max_distance)
        inverse, failed = torch.linalg.inv_ex(sums[:6, :6])
        if failed or not sums[:6, :6].trace() * inverse.trace() < limits.max_condition:
            outcome = Outcome.UNDETERMINED
            break
        rotation, translation = (inverse @ sums[:6, 6]).split(3)
        T = _motion(rotation, translation) @ T
        taken += 1
        if limits.radius * rotation.norm() + translation.norm() < limits.min_step:
            outcome = Outcome.CONVERGED
    return torch.cat([T.reshape(-1), T.new_tensor([outcome, taken])])


def _motion(rotation: Tensor, translation: Tensor) -> Tensor:
    """(4, 4) from a rotation vector (3,) in radians, by Rodrigues' formula, and a translation (3,)."""
    x, y, z = rotation.tolist()
    cross = rotation.new_tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    T = torch.eye(4, dtype=rotation.dtype)
    T[:3, :3] = torch.linalg.matrix_exp(cross)
    T[:3, 3] = translation
    return T
