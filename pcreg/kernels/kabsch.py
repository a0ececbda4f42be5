"""The rigid motions that fit matched points best, from their sums (Kabsch, Acta Crystallographica A 1976)."""

import torch
from torch import Tensor

MIN_POINTS = 3  # that determine a motion
SUMS = 16  # from which it is fitted


def rigid_fit(sums: Tensor) -> Tensor:
    """The motions (H, 4, 4) float64 that take points p to points q with least squared error, no reflections.

    `sums` (H, 16) are those of weights w, of w p, of w q, and of w p q^T by rows. Weights that add up to zero
    count as one: the motion then is not defined, as it is not of points on a line.
    """
    weight = torch.where(sums[:, :1] > 0, sums[:, :1], 1.0)
    p, q = sums[:, 1:4] / weight, sums[:, 4:7] / weight
    covariance = sums[:, 7:].view(-1, 3, 3) - weight[:, :, None] * p[:, :, None] * q[:, None]
    U, _, Vt = torch.linalg.svd(covariance)
    sign = torch.linalg.det(U) * torch.linalg.det(Vt)
    Vt = torch.cat([Vt[:, :2], Vt[:, 2:] * sign[:, None, None]], 1)
    R = Vt.mT @ U.mT
    T = torch.eye(4, dtype=sums.dtype, device=sums.device).repeat(len(sums), 1, 1)
    T[:, :3, :3], T[:, :3, 3] = R, q - (R @ p[:, :, None])[:, :, 0]
    return T
