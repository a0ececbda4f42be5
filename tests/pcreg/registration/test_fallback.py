"""Further scales, a second sample and the mirror test, after a first answer."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import se3, transform
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.estimation import ransac
from pcreg.registration.judge.confidence import MIN_CONFIDENCE
from pcreg.registration.matching.prior import Prior
from pcreg.registration.strategy import fallback
from pcreg.registration.strategy.fallback import answer_at_scales
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.progress import Clock
from tests.pcreg.registration.test_api import VOXEL, correct

SCALE = SingleScaleRegistrar(FPFH(VOXEL))


def matched(pair):
    return SCALE.match(*(cloud.at(SCALE.descriptor) for cloud in pair))


@pytest.fixture(scope="module")
def pair(room):
    return PreparedCloud(Cloud(room.source)), PreparedCloud(Cloud(room.target))


def test_a_second_scale_is_tried_and_kept_only_if_the_first_confirms_it(room, monkeypatch):
    """The first scale has no one-way matches and finds nothing, but it can assess a motion."""
    pair = PreparedCloud(Cloud(room.source)), PreparedCloud(Cloud(room.target))
    first, second = SingleScaleRegistrar(FPFH(0.06), iterations=1), SingleScaleRegistrar(FPFH(0.1))
    assert answer_at_scales(*pair, [first]).registered
    monkeypatch.setattr(ransac, "consistent_motions", lambda *_: np.empty((0, 4, 4)))
    assert not answer_at_scales(*pair, [first]).registered
    found = answer_at_scales(*pair, [first, second])
    assert found.registered
    assert correct(found.of_clouds(*pair), room.T_target_source)
    assert "inliers confirm it" in found.reason
    for cloud in pair:  # is seen from where it was at the first scale
        assert len({tuple(each.viewpoint) for each in cloud._described.values()}) == 1


@pytest.mark.parametrize(("mirrored", "registered"), [(0.1, True), (1.0, False)])
def test_no_motion_that_fits_worse_than_the_mirror_image_is_accepted(pair, monkeypatch, mirrored, registered):
    sure = replace(matched(pair), registered=True, confidence=0.9)
    refused = replace(sure, registered=False, confidence=0.1)
    confirmed = replace(sure, confidence=0.6, voxel=VOXEL / 2)
    monkeypatch.setattr(SingleScaleRegistrar, "assess", lambda *_: confirmed)
    monkeypatch.setattr(fallback, "mirror_confidence", lambda *_: mirrored)
    for thorough, answered in product((True, False), ([refused, refused, sure], [refused, sure], [sure])):
        answers = iter(answered)
        monkeypatch.setattr(SingleScaleRegistrar, "match", lambda *_, _a=answers, **__: next(_a))
        found = answer_at_scales(*pair, [SCALE, SCALE], thorough=thorough)
        if not thorough and len(answered) == 3:  # no other scale is tried
            assert (found.registered, found.notes) == (False, ())
            continue
        assert found.registered is registered
        assert (found.confidence >= MIN_CONFIDENCE) is registered
        if registered:
            both = pytest.approx((0.9**3 * 0.6) ** 0.25), VOXEL / 2
            assert (found.confidence, found.voxel) == (both if len(answered) == 3 else (0.9, VOXEL))
        assert any("mirrored" in note for note in found.notes) is not registered


def test_clouds_that_fit_do_not_fit_mirrored(pair):
    a, b = (cloud.at(SCALE.descriptor) for cloud in pair)
    assert fallback.mirror_confidence(SCALE, a, b, 0, Clock()) < MIN_CONFIDENCE


def test_a_mirrored_cloud_fits_in_the_mirror_whatever_a_prior_says(pair):
    a, b = (cloud.at(SCALE.descriptor) for cloud in pair)
    elsewhere = replace(SCALE, prior=Prior(near=se3(np.eye(3), np.full(3, 50.0)), within=(0.1, 1.0)))
    flipped = fallback.mirrored(a, SCALE.descriptor)
    assert fallback.mirror_confidence(elsewhere, flipped, b, 0, Clock()) > 0.9


@pytest.mark.parametrize(("once", "twice", "counts"), [(0.3, 0.9, 0.9), (0.3, 0.1, 0.3), (0.01, 0.9, 0.01)])
def test_the_likelier_answer_counts_of_one_and_two_samples(pair, monkeypatch, once, twice, counts):
    """A second sample is not tried if the first answer is very unlikely."""
    found, (a, b) = matched(pair), (cloud.at(SCALE.descriptor) for cloud in pair)

    def match(_, source, target, **__):
        assert (source is a) == (target is b)
        likely = once if source is a else twice
        return replace(found, registered=likely >= MIN_CONFIDENCE, confidence=likely)

    monkeypatch.setattr(SingleScaleRegistrar, "match", match)
    monkeypatch.setattr(fallback, "mirror_confidence", lambda *_: 0.0)
    assert answer_at_scales(*pair, [SCALE]).confidence == counts


def test_features_of_two_samples_are_more_alike_where_the_clouds_touch(room, pair):
    descriptor = FCGF.load(voxel=VOXEL)
    alike = []
    for twice in (False, True):
        a, b = (cloud.at(descriptor, twice=twice) for cloud in pair)
        np.testing.assert_allclose(np.linalg.norm(a.features, axis=1), 1, atol=1e-5)
        T = pair[1].frame.T_local_given @ room.T_target_source @ pair[0].frame.T_given_local
        away, nearest = cKDTree(b.points).query(transform(T, a.points))
        near = away < VOXEL / 2
        alike.append((a.features[near] * b.features[nearest[near]]).sum(1).mean())
    assert alike[1] > alike[0] + 0.01


@pytest.mark.parametrize(
    ("confidence", "descriptor", "tried"),
    [(0.01, FCGF.load(voxel=VOXEL), False), (0.3, FCGF.load(voxel=VOXEL), True), (0.01, FPFH(VOXEL), True)],
)
def test_another_voxel_size_is_tried_where_it_may_help(pair, monkeypatch, confidence, descriptor, tried):
    asked, seeds, refused = [], set(), replace(matched(pair), registered=False, confidence=confidence)
    monkeypatch.setattr(SingleScaleRegistrar, "match", lambda *_, seed=0: seeds.add(seed) or refused)

    def scales():
        yield SingleScaleRegistrar(descriptor)
        asked.append(True)

    assert answer_at_scales(*pair, scales(), seed=5).confidence == confidence
    assert (bool(asked), seeds) == (tried, {5})  # that of the mirror test, too
