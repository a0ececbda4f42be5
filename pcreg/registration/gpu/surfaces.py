"""Two surfaces that are brought together by point-to-plane ICP."""

from copy import copy

import torch

from pcreg.geometry.subsample import every_nth
from pcreg.kernels.nearest import nearest_points
from pcreg.kernels.point_to_plane import equations
from pcreg.registration.gpu.arrays import array, motion, on
from pcreg.registration.icp import Surfaces
from pcreg.registration.msac import Floats


class DeviceSurfaces(Surfaces):
    """Those of pcreg.registration.icp, on a device."""

    def __init__(self, source: Floats, target: Floats, normals: Floats, device: str) -> None:
        super().__init__(source, target, normals)
        self.device = device
        self._source, self._target, self._normals = (on(rows, device) for rows in (source, target, normals))

    def of_points(self, count: int) -> "DeviceSurfaces":
        fewer = copy(self)
        fewer.source = every_nth(self.source, count)
        fewer._source = on(fewer.source, self.device)
        return fewer

    def distances(self, T: Floats, max_distance: float) -> Floats:
        found = array(nearest_points(self._moved(T), self._target)[0])
        return found[found < max_distance]

    def normal_equations(self, T: Floats, max_distance: float) -> tuple[Floats, Floats]:
        rows = equations(self._source, self._target, self._normals, on(T, self.device), max_distance)
        sums = array(rows.T @ rows)  # the one wait for the device
        return sums[:6, :6], sums[:6, 6]

    def _moved(self, T: Floats) -> torch.Tensor:
        R, t = motion(T, self.device)
        return self._source @ R + t
