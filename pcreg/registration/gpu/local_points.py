"""The points of a cloud in its local frame."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pcreg.registration.clouds.local_frame import MIRROR, ROUND_UP, LocalFrame
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import DeviceArray, array, kept, on


class DeviceLocalPoints(DeviceArray):
    """Points in a local frame, on a device while there is room, and computed again else.

    So what a caller keeps for later takes none of the device's memory.
    """

    def __init__(self, given: Floats, frame: LocalFrame, is_mirrored: bool, device: str) -> None:
        self.given, self.frame, self.is_mirrored, self.device = given, frame, is_mirrored, device

    @property
    def shape(self) -> tuple[int, ...]:
        return self.given.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.generic]:
        return np.asarray(array(self.tensor), dtype)  # of all points, which nobody sends back

    @property
    def tensor(self) -> Tensor:
        return kept(self, self.device, self._computed)

    def _computed(self) -> Tensor:
        steps = on(self.given, self.device) - on(self.frame.corner, self.device)
        steps *= 1 / self.frame.resolution
        steps += 1 - ROUND_UP
        steps = steps.floor_().mul_(self.frame.resolution)
        return steps * on(MIRROR, self.device) if self.is_mirrored else steps
