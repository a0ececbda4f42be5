"""How alike the descriptors are where two clouds touch."""

import torch
from torch import Tensor

from pcreg.features.base import Description
from pcreg.geometry.subsample import every_nth
from pcreg.kernels.nearest import nearest_points
from pcreg.registration.descriptor_agreement import (
    DEVIATIONS,
    MAX_POINTS,
    DescriptorAgreement,
    Touching,
)
from pcreg.registration.gpu.arrays import array, motion, on
from pcreg.registration.msac import Floats


class DeviceAgreement(DescriptorAgreement):
    """That of pcreg.registration.descriptor_agreement, on a device."""

    def __init__(self, source: Description, target: Description, distance: float, device: str) -> None:
        self.distance, self.device = distance, device
        self.points, self.target_points = every_nth(source.points, MAX_POINTS), target.points
        self._points, self._target = on(self.points, device), on(target.points, device)
        features = on(source.features, device), on(target.features, device)
        mean = torch.cat(features).mean(0)
        some, self._target_features = (_unit(side - mean) for side in features)
        self._features = some[:: max(1, -(-len(some) // MAX_POINTS))]
        others = self._target_features[:: max(1, -(-len(self._target_features) // MAX_POINTS))]
        cosines = self._features @ others.T
        mean_cosine, deviation = torch.stack([cosines.mean(), cosines.std(correction=0)]).tolist()
        self.usual = mean_cosine + DEVIATIONS * deviation
        self.deviation = deviation or 1.0  # descriptors that are all alike tell nothing

    def _touching(self, T_target_source: Floats) -> Touching:
        R, t = motion(T_target_source, self.device)
        distances, nearest = nearest_points(self._points @ R + t, self._target)
        cosines = (self._features * self._target_features[nearest]).sum(1)
        found = array(torch.stack([distances, nearest.double(), cosines.double()]))
        (source,) = (found[0] < self.distance).nonzero()
        return Touching(source, found[1, source].astype(int), found[0, source], found[2, source])


def _unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-9)
