"""A frame of its own for each cloud: whatever is computed of it does not see where its origin lies.

Clouds enter theirs in pcreg/registration/prepared.py, and answers leave them in `Registrar.register`. Nothing
between the two knows the caller's coordinates.
"""

from dataclasses import dataclass, replace

import numpy as np

from pcreg.geometry.se3 import adjoint, box, se3
from pcreg.registration.result import Registration

# Metres, to which coordinates are rounded, as for the network (kernels/point_batch.py); finer in small clouds
RESOLUTION = 2.0**-20
SMALLEST_EXTENT = 2.0**-900  # metres; of a smaller one the resolution would have no inverse
# Of the resolution, from which on a rest is rounded up. Stored coordinates are multiples of powers of two or
# ten: no rest of theirs lies there, so that the noise of adding an offset tips none, as it would at a half.
ROUND_UP = 1 / 6


@dataclass(frozen=True)
class LocalFrame:
    """The frame with its zero at the lower corner of a cloud, and its axes along those of the given frame."""

    corner: np.ndarray  # (3,) float64, metres, in the frame of the cloud as it was given
    resolution: float  # metres

    @staticmethod
    def of(points: np.ndarray) -> "LocalFrame":
        """That of the cloud (N, 3) float64."""
        if len(points) == 0:
            return LocalFrame(np.zeros(3), RESOLUTION)
        low, high = box(points)
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


def between_given(T_target_source: np.ndarray, source: LocalFrame, target: LocalFrame) -> np.ndarray:
    """A motion (4, 4) between two local frames, as it is between the frames that were given."""
    T: np.ndarray = target.T_given_local @ T_target_source @ source.T_local_given
    return T


def in_given_frames(found: Registration, source: LocalFrame, target: LocalFrame) -> Registration:
    """What was found between clouds in their local frames, in the frames that they were given in.

    The covariance is of small motions in the frame of the source; that of a refused motion is left out.
    """
    covariance = None
    if found.registered and found.covariance is not None:
        to_given = adjoint(source.T_given_local)
        covariance = to_given @ found.covariance @ to_given.T
    corners = np.stack([source.corner, target.corner])  # of a match
    return replace(
        found,
        T_target_source=between_given(found.T_target_source, source, target),
        covariance=covariance,
        alternative=None if found.alternative is None else between_given(found.alternative, source, target),
        matched_points=found.matched_points + corners,
    )
