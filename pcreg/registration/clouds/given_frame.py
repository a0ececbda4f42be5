"""Answers between local frames of clouds, in the frames that these were given in."""

from dataclasses import replace

import numpy as np

from pcreg.geometry.se3 import adjoint
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.result import Registration


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
