"""The sample of a cloud from which its scale is taken."""

import numpy as np
import torch

from pcreg.geometry.voxel_size import MIDDLE, Sample, extent_between, step_of
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import DeviceArray, array, kept_on
from pcreg.registration.gpu.cell_counts import DeviceCellCounts


def sample_of(points: Floats | DeviceArray, name: str, device: str) -> Sample:
    """That of pcreg.geometry.voxel_size, on a device."""
    if len(points) == 0:
        return Sample.of(np.asarray(points), name)  # raises InputError
    step = step_of(points)
    columns = kept_on(points, device)[::step].T.contiguous()
    low, high = torch.quantile(columns, columns.new_tensor(MIDDLE), dim=1)
    extent = extent_between(*array(torch.stack([low, high])), name)
    middle = ((columns >= low[:, None]) & (columns <= high[:, None])).all(0).nonzero()[:, 0]
    share = len(middle) / columns.shape[1]
    if share > 0:
        columns = columns[:, middle]
    counts = DeviceCellCounts((columns - columns.amin(1, keepdim=True)).float())
    return Sample(len(points), share or 1.0, extent, counts.without_isolated(extent))
