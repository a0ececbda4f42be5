"""Mutual matches of two sets of features, to compare with."""

import numpy as np

from pcreg.arrays import Array
from pcreg.registration.matching.nearest import match_all


def mutual(features_a: Array, features_b: Array) -> np.ndarray:
    """Index pairs (P, 2) int64, sorted by the first, of rows that are each other's nearest."""
    return match_all(features_a, features_b).rows
