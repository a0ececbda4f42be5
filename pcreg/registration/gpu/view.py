"""What is hidden of a surface from many places at once."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pcreg.geometry.viewpoint import FACE_CELLS, MIN_INCIDENCE_COSINE, WIDTH, View
from pcreg.kernels.occlusion import hidden_and_edge_on
from pcreg.kernels.range_image import OcclusionLimits
from pcreg.registration.gpu.arrays import array, on
from pcreg.runtime.cached_property import cached_property


class DeviceView(View):
    """That of pcreg.geometry.viewpoint, on a device."""

    def __init__(
        self, surface: NDArray[np.float64], normals: NDArray[np.float64], margin: float, device: str
    ) -> None:
        super().__init__(surface, normals, margin)
        self.device = device

    @cached_property
    def _rows(self) -> tuple[Tensor, Tensor]:
        """Points and normals (N, 3): brought when they are asked for, as mostly those of some points are."""
        return on(self.surface, self.device), on(self.normals, self.device)

    def of_points(self, count: int) -> "DeviceView":
        fewer = super().of_points(count)
        return DeviceView(fewer.surface, fewer.normals, fewer.margin, self.device)

    def hidden(self, places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        limits = OcclusionLimits(FACE_CELLS, self.margin, WIDTH, MIN_INCIDENCE_COSINE)
        counts = array(hidden_and_edge_on(on(places, self.device), *self._rows, limits))
        hidden, seen_edge_on = counts.T / len(self.surface)
        return hidden, seen_edge_on
