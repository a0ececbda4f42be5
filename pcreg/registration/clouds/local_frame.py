"""Local frames of clouds: no result depends on the origin of the given frame.

`PreparedCloud` moves a cloud into its local frame, and `Registration.of_clouds` converts answers to the given
frames. All computation in between is in local frames.
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
    """Frame with its origin at the lower corner of a cloud, and the given axes."""

    corner: np.ndarray  # (3,) float64, metres, in the frame of the cloud as it was given
    resolution: float  # metres, to which coordinates are rounded: the network's, or finer in small clouds

    @staticmethod
    def of(box: np.ndarray) -> "LocalFrame":
        """Frame of a cloud with this box, lower and upper corner (2, 3), in the given frame."""
        low, high = box
        extent = (high - low).max()
        smaller = 2.0 ** np.floor(np.log2(max(extent, SMALLEST_EXTENT) / np.pi)) if extent > 0 else 1.0
        return LocalFrame(low, RESOLUTION * min(1.0, float(smaller)))

    def local(self, points: Array) -> Array:
        """Points (..., 3) of the given frame in this one, bit-identical wherever the given origin lies."""
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
    """Convert a motion (4, 4) between local frames to one between the given frames."""
    return target.T_given_local @ T_target_source @ source.T_local_given


def between_local(T_target_source: np.ndarray, source: LocalFrame, target: LocalFrame) -> np.ndarray:
    """Convert a motion (4, 4) between the given frames to one between local frames."""
    return target.T_local_given @ T_target_source @ source.T_given_local
