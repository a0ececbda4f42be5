"""Mutual matches of two sets of features, to compare with."""

import numpy as np

from pcreg.arrays import Array
from pcreg.registration.matching.nearest import keep_mutual, nearest_neighbors


def mutual(features_a: Array, features_b: Array) -> np.ndarray:
    """Index pairs (P, 2) int64, sorted by the first, of rows that are each other's nearest."""
    there = nearest_neighbors(features_a, features_b)
    return keep_mutual(there, features_a, features_b)
