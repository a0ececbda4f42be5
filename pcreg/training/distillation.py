"""Self-distillation from a mean teacher (Tarvainen and Valpola, NeurIPS 2017).

Which points a voxel grid keeps is noise in a descriptor. The teacher, the averaged network, describes each
point on several grids with random origins; the mean has less of that noise. The network learns to give it
from one grid.
"""

import torch
from torch import Tensor


def teacher_descriptors(features: Tensor, view_rows: Tensor) -> Tensor:
    """Targets (N, S C) from features (R, C) of the views and the rows (N, V, S) int64 of each point in them.

    For each of S scales the mean over V views, of unit length; concatenated over scales as FCGF does.
    """
    mean = features[view_rows].mean(1)  # (N, S, C)
    return torch.nn.functional.normalize(mean, dim=2).flatten(1) / view_rows.shape[2] ** 0.5


def distillation_loss(features: Tensor, targets: Tensor) -> Tensor:
    """The mean of 1 - cosine between unit descriptors (N, C) and their targets (N, C): a scalar, 0 to 2."""
    return 1 - (features * targets).sum(1).mean()
