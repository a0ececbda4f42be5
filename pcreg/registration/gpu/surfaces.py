"""Two surfaces that are brought together by point-to-plane ICP."""

from copy import copy

import numpy as np
import torch

from pcreg.geometry.se3 import transform
from pcreg.geometry.subsample import every_nth
from pcreg.kernels.nearest import nearest_points
from pcreg.kernels.point_to_plane import Limits, Outcome, iterate, normal_equations
from pcreg.registration.estimation.icp import MAX_COARSE_POINTS, MAX_CONDITION, MAX_ITERATIONS, Surfaces
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, kept_on, motion, on

AT_ONCE = 10  # iterations; right motions take 5 to 15


class DeviceSurfaces(Surfaces):
    """Those of pcreg.registration.estimation.icp, on a device."""

    def __init__(
        self, source: Floats, target: Floats, normals: Floats, start: Floats, origin: Floats, device: str
    ) -> None:
        self.device = device
        own, there, self._normals = (kept_on(rows, device) for rows in (source, target, normals))
        R, t = motion(start, device)
        self._source, self._target = own @ R + t, there - on(origin, device)
        # Some points tell well enough how far out they lie
        self.source = transform(start, every_nth(source, MAX_COARSE_POINTS))

    def of_points(self, count: int) -> "DeviceSurfaces":
        fewer = copy(self)
        fewer._source = every_nth(self._source, count).contiguous()
        return fewer

    def fits(self, motions: Floats, distance: float) -> Floats:
        """All of them at once, with one wait for the device."""
        R, t = motion(motions, self.device)
        moved = self._source @ R + t[:, None]  # (H, N, 3)
        apart = nearest_points(moved.view(-1, 3), self._target)[0].view(moved.shape[:2])
        near = apart < distance
        apart = torch.where(near, apart, 0.0)
        score = torch.where(near, 1 - (apart / distance) ** 2, 0.0).sum(1)
        count = near.sum(1).double()
        rms = ((apart**2).sum(1) / count.clamp(min=1)).sqrt()
        return array(torch.stack([score, count, rms], 1))

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
