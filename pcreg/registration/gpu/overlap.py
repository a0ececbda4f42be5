"""Where two surfaces touch under a motion."""

import numpy as np
import torch

from pcreg.kernels.nearest import nearest_points
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, kept_on, motion
from pcreg.registration.judge.overlap import Overlap


def overlap(
    source: Floats, target: Floats, normals: Floats, T_target_source: Floats, distance: float, device: str
) -> Overlap:
    """That of pcreg.registration.judge.overlap, on a device, with one wait for it."""
    own, there, along = (kept_on(rows, device) for rows in (source, target, normals))
    R, t = motion(T_target_source, device)
    moved = own @ R + t
    apart, partner = nearest_points(moved, there)
    back, _ = nearest_points(there, moved)
    along = along[partner]
    offsets = ((there[partner] - moved) * along).sum(1)
    found = array(torch.cat([moved.view(-1), along.view(-1), apart, offsets, back]))
    N = len(source)
    moved, along = found[: 3 * N].reshape(-1, 3), found[3 * N : 6 * N].reshape(-1, 3)
    apart, offsets, back = np.split(found[6 * N :], (N, 2 * N))
    touching = apart < distance
    rows = np.flatnonzero(touching)
    points, along = moved.take(rows, axis=0), along.take(rows, axis=0)
    return Overlap(moved, touching, back < distance, points, along, offsets.take(rows))
