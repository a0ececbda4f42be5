"""A descriptor of a whole scan: local ones around common centres (VLAD; Jegou et al., CVPR 2010)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2

from pcreg.arrays import every_nth
from pcreg.registration.matching.screening import Keypoints, nearest_rows

CENTRES = 128
MAX_LEARNED_SCANS, MAX_LEARNED_FEATURES = 200, 10_000  # of all: what the centres are learned from
ITERATIONS = 10


@dataclass(frozen=True)
class GlobalDescriptor:
    """Centres, and the descriptors, of the scans to compare with."""

    centres: np.ndarray  # (CENTRES, C) float32
    mean: np.ndarray  # (CENTRES * C,) float32
    whole: np.ndarray  # (S, CENTRES * C) float32, a unit vector for each scan; the mean is taken off

    @staticmethod
    def learned(keypoints: Sequence[Keypoints]) -> "GlobalDescriptor":
        """Learn from at least one scan."""
        chosen = every_nth(np.arange(len(keypoints)), MAX_LEARNED_SCANS)
        share = MAX_LEARNED_FEATURES // len(chosen)
        some = np.concatenate([every_nth(keypoints[row].features, share) for row in chosen])
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a centre without features stays where it is
            centres, _ = kmeans2(some, min(CENTRES, len(some)), ITERATIONS, minit="points", rng=rng)
        found = np.stack([_vlad(each.features, centres) for each in keypoints])
        mean = found.mean(0)
        return GlobalDescriptor(centres, mean, _unit(found - mean))

    def describe(self, keypoints: Keypoints) -> np.ndarray:
        """The descriptor (CENTRES * C,) of a further scan."""
        return _unit(_vlad(keypoints.features, self.centres) - self.mean)


def _vlad(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Sums of the residuals of features (N, C) to their nearest centre, (CENTRES * C,), of unit length."""
    nearest = nearest_rows(features, centres)
    sums = np.stack([(features[nearest == k] - centre).sum(0) for k, centre in enumerate(centres)])
    whole = sums.ravel()
    return _unit(np.sign(whole) * np.sqrt(np.abs(whole)))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
