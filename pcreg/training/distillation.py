"""A teacher for the descriptors: the averaged network, by what it makes of other thinnings of a cloud.

Which points a grid keeps is noise in a descriptor. The mean over several thinnings has less of it, and tells
points apart better; the network learns to give that mean from one thinning (a mean teacher: Tarvainen and
Valpola, NeurIPS 2017).
"""

import torch
from torch import Tensor


def teaching(features: Tensor, view_rows: Tensor) -> Tensor:
    """What the teacher says of each point: features (R, C) of all rows, view_rows (N, V, S) -> (N, S C).

    The mean over the V views of each of the S scales, of unit length, side by side as FCGF joins scales.
    """
    mean = features[view_rows].mean(1)  # (N, S, C)
    return torch.nn.functional.normalize(mean, dim=2).flatten(1) / view_rows.shape[2] ** 0.5


def disagreement(features: Tensor, taught: Tensor) -> Tensor:
    """One less the cosine between unit descriptors (N, C) and those of the teacher, on average: a scalar."""
    return 1 - (features * taught).sum(1).mean()
