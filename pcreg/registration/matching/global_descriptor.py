"""Global descriptors of scans by VLAD of the local ones (Jegou et al., CVPR 2010)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2

from pcreg.arrays import every_nth
from pcreg.registration.matching.screening import Keypoints, nearest_rows

CENTRES = 128
MAX_LEARNED_SCANS, MAX_LEARNED_FEATURES = 200, 10_000  # in all, from which centres are learned
ITERATIONS = 10


@dataclass(frozen=True)
class GlobalDescriptor:
    """Cluster centres, and global descriptors of the scans to compare with."""

    centres: np.ndarray  # (CENTRES, C) float32
    mean: np.ndarray  # (CENTRES * C,) float32, of the scans' VLAD vectors
    whole: np.ndarray  # (S, CENTRES * C) float32, a unit vector for each scan, after the mean is subtracted

    @staticmethod
    def learned(keypoints: Sequence[Keypoints]) -> "GlobalDescriptor":
        """Learn the centres from one scan or more, and describe each."""
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
        """The global descriptor (CENTRES * C,) of a further scan."""
        return _unit(_vlad(keypoints.features, self.centres) - self.mean)


def _vlad(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Unit vector (CENTRES * C,) of signed roots of summed residuals of features (N, C) to their centres."""
    nearest = nearest_rows(features, centres)
    sums = np.stack([(features[nearest == k] - centre).sum(0) for k, centre in enumerate(centres)])
    whole = sums.ravel()
    return _unit(np.sign(whole) * np.sqrt(np.abs(whole)))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
