"""Normals of the surface that points were taken from."""

import torch

from pcreg.geometry.normals import NEIGHBORS
from pcreg.kernels.neighborhood import least_directions, scatter_matrices
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, kept_on, on


def normals_of(points: Floats, radius: float, device: str) -> Floats:
    """Those of pcreg.geometry.normals, on a device; zeros where points lie on a line."""
    own = kept_on(points, device)  # the surface of a cloud, which is asked for again
    return array(least_directions(scatter_matrices(own, own, NEIGHBORS, radius)))


def surface_variation(queries: Floats, points: Floats, radius: float, device: str) -> Floats:
    """That of pcreg.geometry.normals, on a device."""
    scatter = scatter_matrices(on(queries, device), on(points, device), NEIGHBORS, radius)
    normals = least_directions(scatter)
    least = torch.einsum("qi,qij,qj->q", normals, scatter, normals)
    total = scatter.diagonal(dim1=1, dim2=2).sum(1)
    return array(least / total.clamp(min=torch.finfo(total.dtype).tiny))
