"""Submaps: consecutive sweeps of one sensor, fused in one frame with the poses and thinned."""

import numpy as np
import torch

from pcreg.datasets.simulated.recording import Recording
from pcreg.geometry.se3 import transform
from pcreg.kernels.grid import grid_sample

SWEEPS = (2, 5)  # of a submap, at least, but for the last, and at most; no sweep is in two
SPACINGS = (0.05, 0.25)  # metres: range of the cells that keep one point each


def submaps(rng: np.random.Generator, recording: Recording) -> Recording:
    """The clouds of one sensor in runs of a few; each in the frame of its middle sweep, its viewpoint."""
    spacing, start = rng.uniform(*SPACINGS), 0
    clouds, poses = [], []
    while start < len(recording.clouds):
        end = start + int(rng.integers(SWEEPS[0], SWEEPS[1] + 1))
        run = range(start, min(end, len(recording.clouds)))
        middle = run[len(run) // 2]
        parts = [_moved(recording, n, middle) for n in run]
        points = torch.cat(parts)
        lengths, origin = torch.tensor([len(points)], device=points.device), points.new_zeros(1, 3)
        clouds.append(points[grid_sample(points, lengths, spacing, origin)].float())
        poses.append(recording.T_world_cloud[middle])
        start = end
    return Recording(clouds, np.stack(poses))


def _moved(recording: Recording, source: int, target: int) -> torch.Tensor:
    cloud = recording.clouds[source].double()
    return transform(torch.from_numpy(recording.motion(source, target)).to(cloud), cloud)
