"""A frame of its own for each cloud: whatever is computed of it does not see where its origin lies.

Clouds enter theirs in pcreg/registration/clouds/prepared.py, and answers leave them in `Registrar.register`
(given_frame.py). Nothing between the two knows the caller's coordinates.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pcreg.geometry.se3 import se3

# Metres, to which coordinates are rounded, as for the network (kernels/point_batch.py); finer in small clouds
RESOLUTION = 2.0**-20
SMALLEST_EXTENT = 2.0**-900  # metres; of a smaller one the resolution would have no inverse
# Of the resolution, from which on a rest is rounded up. Stored coordinates are multiples of powers of two or
# ten: no rest of theirs lies there, so that the noise of adding an offset tips none, as it would at a half.
ROUND_UP = 1 / 6
MIRROR = np.array([-1.0, 1.0, 1.0])


@dataclass(frozen=True)
class LocalFrame:
    """The frame with its zero at the lower corner of a cloud, and its axes along those of the given frame."""

    corner: np.ndarray  # (3,) float64, metres, in the frame of the cloud as it was given
    resolution: float  # metres

    @staticmethod
    def of(box: np.ndarray) -> "LocalFrame":
        """That of a cloud with this lower and upper corner (2, 3), as it was given."""
        low, high = box
        extent = (high - low).max()
        smaller = 2.0 ** np.floor(np.log2(max(extent, SMALLEST_EXTENT) / np.pi)) if extent > 0 else 1.0
        return LocalFrame(low, RESOLUTION * min(1.0, float(smaller)))

    def local(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) of the given frame in this one, the same to the last bit wherever that is."""
        steps = points - self.corner  # and in place from here on: clouds may have 20 million points
        steps *= 1 / self.resolution  # a power of two
        steps += 1 - ROUND_UP
        np.floor(steps, out=steps)
        steps *= self.resolution
        return steps

    @property
    def T_given_local(self) -> np.ndarray:
        """The motion (4, 4) from this frame into the given one."""
        return se3(np.eye(3), self.corner)

    @property
    def T_local_given(self) -> np.ndarray:
        return se3(np.eye(3), -self.corner)


class LocalPoints(Protocol):
    """Points (N, 3) float64, metres, in a local frame: an array, or what a device has, asked as that is."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def take(self, rows: np.ndarray, axis: int) -> "LocalPoints": ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...


def local_points(points: np.ndarray, frame: LocalFrame, is_mirrored: bool) -> np.ndarray:
    """Points (..., 3) of the given frame in a local one, or with the first axis of that flipped."""
    local = frame.local(points)
    return local * MIRROR if is_mirrored else local
