"""Two surfaces that are brought together by point-to-plane ICP."""

from copy import copy

import numpy as np
import torch

from pcreg.geometry.subsample import every_nth
from pcreg.kernels.nearest import nearest_points
from pcreg.kernels.point_to_plane import Limits, Outcome, iterate, normal_equations
from pcreg.registration.gpu.arrays import array, motion, on
from pcreg.registration.icp import MAX_CONDITION, MAX_ITERATIONS, Surfaces
from pcreg.registration.msac import Floats

AT_ONCE = 10  # iterations; right motions take 5 to 15


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
        own = self._source, self._target, self._normals
        sums = array(normal_equations(*own, on(T, self.device), max_distance))
        return sums[:6, :6], sums[:6, 6]

    def point_to_plane(
        self, T: Floats, max_distance: float, min_step: float, iterations: int = MAX_ITERATIONS
    ) -> Floats:
        """Some iterations at a time without a wait, unless directions have to be left alone."""
        state = on(np.append(T, (Outcome.GOING_ON, 0)), self.device)
        limits = Limits(max_distance, self.radius(T), min_step, MAX_CONDITION)
        for first in range(0, iterations, AT_ONCE):
            count = min(AT_ONCE, iterations - first)
            state = iterate(self._source, self._target, self._normals, state, limits, count)
            *entries, outcome, taken = array(state).tolist()
            if outcome != Outcome.GOING_ON:
                break
        T = np.reshape(entries, (4, 4))
        if outcome == Outcome.UNDETERMINED:
            return super().point_to_plane(T, max_distance, min_step, iterations - int(taken))
        return T

    def _moved(self, T: Floats) -> torch.Tensor:
        R, t = motion(T, self.device)
        return self._source @ R + t
