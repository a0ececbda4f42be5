"""A local frame for each cloud: no result depends on where the origin of the given frame lies.

Clouds enter theirs in pcreg/registration/clouds/prepared.py, and answers leave them in
`Registration.of_clouds`. Nothing between the two has the caller's coordinates.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, is_on_host, like
from pcreg.geometry.se3 import translation
from pcreg.kernels.pyramid_config import RESOLUTION

SMALLEST_EXTENT = 2.0**-900  # metres; below it 1 / resolution overflows
# Remainder, in units of the resolution, from which on coordinates are rounded up. Files store multiples of
# powers of two or ten, which have no remainder near 1/6 but many at 1/2: there the rounding error of an added
# offset would change results.
ROUND_UP = 1 / 6


@dataclass(frozen=True)
class LocalFrame:
    """Frame with its zero at the lower corner of a cloud, and its axes along those of the given frame."""

    corner: np.ndarray  # (3,) float64, metres, in the frame of the cloud as it was given
    resolution: float  # metres, to which coordinates are rounded: the network's, or finer in small clouds

    @staticmethod
    def of(box: np.ndarray) -> "LocalFrame":
        """Frame of a cloud with this lower and upper corner (2, 3), as it was given."""
        low, high = box
        extent = (high - low).max()
        smaller = 2.0 ** np.floor(np.log2(max(extent, SMALLEST_EXTENT) / np.pi)) if extent > 0 else 1.0
        return LocalFrame(low, RESOLUTION * min(1.0, float(smaller)))

    def local(self, points: Array) -> Array:
        """Points (..., 3) of the given frame in this one, the same to the last bit wherever that is."""
        # In place from here on: clouds may have 20 million points
        steps = points - like(self.corner, points)
        steps *= 1 / self.resolution  # a power of two
        steps += 1 - ROUND_UP
        steps = np.floor(steps, out=steps) if is_on_host(steps) else steps.floor_()
        steps *= self.resolution
        return steps

    @property
    def T_given_local(self) -> np.ndarray:
        """Motion (4, 4) from this frame into the given one."""
        return translation(self.corner)

    @property
    def T_local_given(self) -> np.ndarray:
        """Motion (4, 4) from the given frame into this one."""
        return translation(-self.corner)


def between_given(T_target_source: np.ndarray, source: LocalFrame, target: LocalFrame) -> np.ndarray:
    """A motion (4, 4) between two local frames, taken to the frames that were given."""
    return target.T_given_local @ T_target_source @ source.T_local_given


def between_local(T_target_source: np.ndarray, source: LocalFrame, target: LocalFrame) -> np.ndarray:
    """A motion (4, 4) between the frames that were given, taken to the local frames of two clouds."""
    return target.T_local_given @ T_target_source @ source.T_given_local
