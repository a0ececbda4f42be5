"""Feature-match recall: how well descriptors alone find the overlap of known pairs."""

from functools import lru_cache

import numpy as np

from pcreg.evaluation.metrics import feature_matched, inlier_ratio
from pcreg.features.base import Description, Descriptor
from pcreg.io.pairs import PairDataset
from pcreg.registration.matching.nearest import nearest_neighbors
from pcreg.runtime.errors import InputError

CLOUDS_KEPT = 64  # descriptions in memory at a time


def check_pairs(dataset: PairDataset) -> None:
    """InputError for a validation set without pairs: figures of none would choose no best weights."""
    if not dataset.pairs:
        raise InputError(
            f"validation: {dataset.name} has no pairs; check the settings under validation "
            "(its root, scenes, overlap or distance), or name another data set"
        )


def feature_match_recall(
    descriptor: Descriptor,
    dataset: PairDataset,
    n_points: int = 5000,
    tau: float = 0.1,
    minimum: float = 0.05,
    seed: int = 0,
) -> dict[str, float]:
    """Match random points one way, source to target, and count the matches that the truth confirms.

    A match is an inlier when it is less than `tau` metres off. Returns `inlier_ratio`, the mean over
    pairs, and `feature_match_recall`, the fraction of pairs with more than `minimum`. Raises InputError for
    a data set without pairs.
    """
    check_pairs(dataset)

    @lru_cache(maxsize=CLOUDS_KEPT)
    def describe(name: str) -> Description:
        described = descriptor.describe(dataset.cloud(name))
        rng = np.random.default_rng([seed, len(described.points)])
        rows = rng.permutation(len(described.points))[:n_points]
        return Description(described.points[rows], described.features[rows])

    ratios = []
    for pair in dataset.pairs:
        source, target = describe(pair.source), describe(pair.target)
        matches = nearest_neighbors(source.features, target.features)
        matched = source.points[matches[:, 0]], target.points[matches[:, 1]]
        ratios.append(inlier_ratio(*matched, pair.T_target_source, tau))
    return {
        "feature_match_recall": float(feature_matched(ratios, minimum).mean()),
        "inlier_ratio": float(np.mean(ratios)),
    }
