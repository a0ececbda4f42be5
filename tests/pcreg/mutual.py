"""Mutual matches of two sets of features, to compare with."""

import numpy as np

from pcreg.registration.matching.nearest import Features, keep_mutual, nearest_neighbors


def mutual(features_a: Features, features_b: Features, **blocks: int) -> np.ndarray:
    """Index pairs (P, 2) int64, sorted by the first, of rows that are each other's nearest."""
    there = nearest_neighbors(features_a, features_b, **blocks)
    return keep_mutual(there, features_a, features_b, **blocks)
