import numpy as np
import pytest

from pcreg.evaluation.estimators import KissMatcher, Matched, NativeRansac, Open3DRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.geometry.se3 import random_rotation, rotation_error, se3, transform, translation_error
from pcreg.registration.matching.nearest import Matches

PROTOCOL = Protocol(name="toy", voxel=0.03, gates=[(2, 5)])


@pytest.fixture(params=[Open3DRansac, NativeRansac, KissMatcher])
def estimator(request):
    if request.param is KissMatcher:
        pytest.importorskip("kiss_matcher")
    return request.param()


def described(points):
    """Points with descriptors that are all equal."""
    return Description(points, np.ones((len(points), 1), dtype=np.float32))


def given(source, target, matches):
    return Matched(source, target, Matches(matches), matches, 0.0)


def test_a_known_motion_is_found_among_wrong_matches(estimator):
    """Five matches, four of them wrong."""
    rng = np.random.default_rng(0)
    T = se3(random_rotation(rng), np.array([1.0, 2.0, 3.0]))
    source = rng.uniform(-2, 2, (500, 3))
    target = transform(T, source) + 0.005 * rng.normal(size=source.shape)
    partner = np.arange(500)
    wrong = rng.choice(500, 400, replace=False)
    partner[wrong] = rng.permutation(partner[wrong])
    matches = np.column_stack([np.arange(500), partner])
    found = estimator.estimate(given(described(source), described(target), matches), PROTOCOL, 7)
    assert found.dtype == np.float64
    assert translation_error(found, T) < 0.03
    assert rotation_error(found, T) < 1.0


def test_ransac_of_open3d_scores_on_all_points_given():
    """Four matches fit a wrong motion, which the points without a match contradict."""
    rng = np.random.default_rng(1)
    source = rng.uniform(-1, 1, (300, 3))
    T_wrong = se3(random_rotation(rng), np.array([0.5, 0.0, 0.0]))
    target = np.concatenate([source, transform(T_wrong, source[:5])])
    right, wrong = np.column_stack([np.arange(5, 9)] * 2), np.column_stack([np.arange(5), 300 + np.arange(5)])
    matches = np.concatenate([wrong, right])
    estimate = Open3DRansac().estimate
    found = estimate(given(described(source), described(target), matches), PROTOCOL, 0)
    assert translation_error(found, np.eye(4)) < 0.01
    own = np.column_stack([np.arange(9)] * 2)
    matched = described(source[matches[:, 0]]), described(target[matches[:, 1]])
    assert translation_error(estimate(given(*matched, own), PROTOCOL, 0), T_wrong) < 0.01
