"""Where the parts of a registration that take longest are computed: here, or on a GPU. The one dispatch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from pcreg.arrays import Array, to_host
from pcreg.geometry.nearest import have_neighbors, tree_for_few
from pcreg.geometry.normals import normals_of, surface_variation
from pcreg.geometry.planarity import Variation
from pcreg.geometry.rows import Rows
from pcreg.geometry.se3 import box
from pcreg.geometry.viewpoint import View, ViewOf
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.geometry.voxel_size import Sample, SampleOf
from pcreg.registration.clouds.local_frame import LocalPoints, local_points
from pcreg.runtime import parallel


@dataclass(frozen=True)
class Backend:
    """The definitions, or what computes the same on a device."""

    local_points: Callable[..., LocalPoints] = local_points
    box: Callable[[LocalPoints], np.ndarray] = box
    sample: SampleOf = Sample.of
    voxel_downsample: Callable[..., np.ndarray] = voxel_downsample
    have_neighbors: Callable[[LocalPoints, int, float], np.ndarray] = have_neighbors
    view: ViewOf = View
    spacing_index: Callable[[np.ndarray], Any] = tree_for_few
    normals_of: Callable[[np.ndarray, float], np.ndarray] = normals_of
    surface_variation: Variation = surface_variation
    index: Callable[[np.ndarray], Any] = cKDTree  # of points (N, 3); is asked as that is
    features: Callable[[Rows], Array] = to_host  # where they are matched
    each: Callable[..., list] = parallel.each  # of two clouds, or of two attempts


CPU = Backend()


@cache
def backend_on(device: str) -> Backend:
    """That for a device which is there: cpu, cuda or cuda:N."""
    if device == "cpu":
        return CPU
    from pcreg.registration import gpu  # imports PyTorch

    on_device = {name: partial(function, device=device) for name, function in gpu.BACKEND.items()}
    return Backend(**on_device, each=parallel.in_turn)
