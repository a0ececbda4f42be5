"""How large a cloud without metric scale is, proposed by its matches with a metric one.

Descriptors are of metric size, so the source is described at several sizes, a factor of 1.25 apart, around
the one at which it extends as far as the target: within an eighth of the right size descriptors still match.
Distances are more sensitive: at each size the matches are enlarged in steps of 3 %, and those that then
agree on one rigid motion give the scale by Umeyama's least squares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.geometry.se3 import residuals
from pcreg.geometry.similarity import scale_of, umeyama
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.matching.prior import Prior
from pcreg.registration.matching.screening import (
    MATCH_DISTANCE_VOXELS,
    MIN_MATCHES,
    Keypoints,
    agreeing,
    mutual_matches,
)
from pcreg.registration.matching.spatial_consistency import consistent_motions
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError, OutputError

# Of the extent of the target, that the source may have; clouds that overlap by a third differ by up to 2
MAX_EXTENT_RATIO = 2.5
DESCRIPTION_STEP = 1.25  # between sizes at which the source is described
ENLARGEMENTS = 1.03 ** np.arange(-4, 5)  # of its matches: half a step each way
SAME_SCALE = 1.1  # ratio up to which two proposals are one
REFITS = 5  # by least squares to the matches that agree, each of which may change which do


@dataclass(frozen=True)
class ProposedScale:
    """A size of the source and how many matches agree on it."""

    scale: float  # what the coordinates of the source are to be multiplied by
    agreeing: int


def extent_ratio(source: PreparedCloud, target: PreparedCloud) -> float:
    """The scale at which the source extends as far as the target."""
    return target.sample.extent / source.sample.extent


def proposed_scales(
    source: PreparedCloud, target: PreparedCloud, at: SingleScaleRegistrar, around: float
) -> list[ProposedScale]:
    """Scales of the source that differ by a tenth or more, that on which most matches agree first.

    They are within a factor of 2.5 `around` one. Both clouds are described `at` one voxel size. Empty if
    hardly any matches are mutual; InputError if a cloud has too few points at that voxel size.
    """
    there = Keypoints.of(target.at(at.descriptor), at.voxel)
    middle = source.enlarged(around).at(at.descriptor)  # an estimated viewpoint serves for all sizes
    steps = round(np.log(MAX_EXTENT_RATIO) / np.log(DESCRIPTION_STEP))
    sizes = around * DESCRIPTION_STEP ** np.arange(-steps, steps + 1)

    def fitted(size: float) -> ProposedScale | None:
        viewpoint = Viewpoint(middle.viewpoint * (size / around), bool(middle.viewpoint_known))
        return _fitted(source.enlarged(size), viewpoint, there, at, size)

    found = parallel.each(fitted, sizes.tolist())
    return _distinct([each for each in found if each])


def _fitted(
    enlarged: PreparedCloud, viewpoint: Viewpoint, target: Keypoints, at: SingleScaleRegistrar, size: float
) -> ProposedScale | None:
    """The scale near the `size` of an enlarged source; None if it has too few points or matches."""
    try:
        keypoints = Keypoints.of(enlarged.at(at.descriptor, viewpoint), at.voxel)
    except OutputError:
        raise
    except InputError:
        return None
    points, partners = mutual_matches(keypoints, target)
    if len(points) < MIN_MATCHES:
        return None
    distance = MATCH_DISTANCE_VOXELS * at.voxel
    fits = [_fit(points, partners, float(factor), distance, at.prior) for factor in ENLARGEMENTS]
    factor, most = max(fits, key=lambda fit: fit[1])
    return ProposedScale(size * factor, most)


def _fit(
    points: np.ndarray, partners: np.ndarray, factor: float, distance: float, prior: Prior
) -> tuple[float, int]:
    """The scale near a factor on which most matches (P, 3), (P, 3) agree to `distance`, and how many do."""
    motions = consistent_motions(factor * points, partners, distance, prior)
    best, most = factor, 0
    if len(motions) == 0:
        return best, most
    agree = agreeing(motions.astype(np.float32), factor * points, partners, distance)  # (H, P)
    inliers = agree[agree.sum(1).argmax()]
    most = int(inliers.sum())
    for _ in range(REFITS):
        if most < MIN_MATCHES:
            break
        T = umeyama(points[inliers], partners[inliers])
        inliers = residuals(T, points, partners) < distance
        if inliers.sum() < most:
            break
        best, most = scale_of(T), int(inliers.sum())
    return best, most


def _distinct(found: Sequence[ProposedScale]) -> list[ProposedScale]:
    """Those on which most matches agree, without others next to one."""
    distinct: list[ProposedScale] = []
    for each in sorted(found, key=lambda each: -each.agreeing):
        if all(max(each.scale / other.scale, other.scale / each.scale) > SAME_SCALE for other in distinct):
            distinct.append(each)
    return distinct
