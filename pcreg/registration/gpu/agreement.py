"""How alike the descriptors are where two clouds touch."""

import numpy as np
import torch
from torch import Tensor

from pcreg.features.base import Description
from pcreg.geometry.subsample import every_nth
from pcreg.kernels.agreement import align
from pcreg.kernels.nearest import nearest_points
from pcreg.registration.estimation.agreement import (
    DEVIATIONS,
    ITERATIONS,
    MAX_POINTS,
    MIN_TOUCHING,
    DescriptorAgreement,
    Touching,
)
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, kept_on, motion, on


class DeviceAgreement(DescriptorAgreement):
    """That of pcreg.registration.estimation.agreement, on a device."""

    def __init__(self, source: Description, target: Description, distance: float, device: str) -> None:
        self.distance, self.device = distance, device
        self.points, self.target_points = every_nth(source.points, MAX_POINTS), target.points
        own, self._target = kept_on(source.points, device), kept_on(target.points, device)
        self._points = every_nth(own, MAX_POINTS).contiguous()
        features = [kept_on(cloud.features_in_place, device) for cloud in (source, target)]
        mean = torch.cat(features).mean(0)
        some, self._target_features = (_unit(side - mean) for side in features)
        self._features = every_nth(some, MAX_POINTS).contiguous()
        cosines = self._features @ every_nth(self._target_features, MAX_POINTS).T
        mean_cosine, deviation = torch.stack([cosines.mean(), cosines.std(correction=0)]).tolist()
        self.usual = mean_cosine + DEVIATIONS * deviation
        self.deviation = deviation or 1.0  # descriptors that are all alike tell nothing

    def __call__(self, motions: Floats) -> Floats:
        """All of them at once."""
        if len(motions) == 0:
            return np.empty(0)
        distances, _, cosines = self._nearest(motions)
        excess = torch.where(distances < self.distance, (cosines - self.usual) / self.deviation, 0.0)
        return array(excess.double().mean(1))

    def _touching(self, T_target_source: Floats) -> Touching:
        distances, nearest, cosines = array(torch.cat(self._nearest(T_target_source[None])))
        (source,) = (distances < self.distance).nonzero()
        return Touching(source, nearest[source].astype(int), distances[source], cosines[source])

    def refine(self, T_target_source: Floats) -> Floats:
        """With one wait for the device."""
        clouds = self._points, self._target, self._features, self._target_features
        T = on(T_target_source, self.device)
        return array(align(*clouds, T, self.distance, self.usual, MIN_TOUCHING, ITERATIONS))

    def _nearest(self, motions: Floats) -> tuple[Tensor, Tensor, Tensor]:
        """Of motions (H, 4, 4) of the source: metres to the nearest target point, its row, and the cosine.

        All (H, N) float64.
        """
        R, t = motion(motions, self.device)
        moved = self._points @ R + t[:, None]
        distances, nearest = nearest_points(moved.view(-1, 3), self._target)
        shape = moved.shape[:2]
        cosines = (self._features * self._target_features[nearest].view(*shape, -1)).sum(2)
        return distances.view(shape), nearest.view(shape).double(), cosines.double()


def _unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-9)
