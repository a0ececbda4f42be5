"""Normals of the surface that points were taken from."""

import torch
from torch import Tensor

from pcreg.geometry.normals import NEIGHBORS
from pcreg.kernels.neighborhood import scatter_matrices
from pcreg.kernels.plane_fit import least_direction
from pcreg.registration.gpu.arrays import array, on
from pcreg.registration.msac import Floats


def normals_of(points: Floats, radius: float, device: str) -> Floats:
    """Those of pcreg.geometry.normals, on a device; zeros where points lie on a line."""
    own = on(points, device)
    return array(_normals(scatter_matrices(own, own, NEIGHBORS, radius)))


def surface_variation(queries: Floats, points: Floats, radius: float, device: str) -> Floats:
    """That of pcreg.geometry.normals, on a device."""
    scatter = scatter_matrices(on(queries, device), on(points, device), NEIGHBORS, radius)
    normals = _normals(scatter)
    least = torch.einsum("qi,qij,qj->q", normals, scatter, normals)
    total = scatter.diagonal(dim1=1, dim2=2).sum(1)
    return array(least / total.clamp(min=torch.finfo(total.dtype).tiny))


def _normals(scatter: Tensor) -> Tensor:
    """The directions (Q, 3) of least scatter (Q, 3, 3)."""
    return least_direction(torch, *(scatter[:, i, j] for i in range(3) for j in range(i, 3)))
