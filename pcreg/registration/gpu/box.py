"""The box around points."""

import torch

from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import DeviceArray, array, kept_on


def box(points: Floats | DeviceArray, device: str) -> Floats:
    """That of pcreg.geometry.se3, on a device."""
    own = kept_on(points, device)
    return array(torch.stack([own.amin(0), own.amax(0)]))
