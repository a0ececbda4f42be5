import numpy as np

from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import se3


def mean_overlap(recording, pairs, radius, shift=0.0):
    """Mean over pairs (source, target), by their motions and `shift` metres along each axis."""
    displacement = se3(np.eye(3), np.full(3, shift))
    clouds = [cloud.double().numpy() for cloud in recording.clouds]
    motions = [displacement @ recording.motion(*pair) for pair in pairs]
    found = zip(pairs, motions, strict=True)
    return np.mean([measured_overlap(clouds[a][::5], clouds[b], T, radius) for (a, b), T in found])
