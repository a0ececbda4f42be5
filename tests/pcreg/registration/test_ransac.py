from itertools import combinations, product

import numpy as np
import pytest

from pcreg.geometry.se3 import (
    random_rotation,
    rms_displacement,
    rotation_error,
    se3,
    transform,
    translation_error,
)
from pcreg.registration.estimation import ransac as estimation
from pcreg.registration.estimation.consensus import MatchedPoints
from pcreg.registration.estimation.ransac import ransac
from pcreg.registration.matching.prior import ANY


def correspondences(P=1000, inlier_ratio=0.1, noise=0.0, seed=0, offset=0.0):
    """Source, target (P, 3), of which the first P * inlier_ratio correspond under the motion returned."""
    rng = np.random.default_rng(seed)
    T = se3(random_rotation(rng), rng.normal(size=3))
    source = rng.uniform(-1.5, 1.5, (P, 3)) + offset
    target = transform(T, rng.uniform(-1.5, 1.5, (P, 3)) + offset)
    inliers = round(P * inlier_ratio)
    target[:inliers] = transform(T, source[:inliers]) + rng.normal(0, noise, (inliers, 3))
    return source, target, T


def test_samples_have_edges_of_like_lengths_on_both_sides_and_are_brought_together():
    """Edges differ in length by 20 % and 9 %; a sample with the same match twice has no edge."""
    p, q = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0.0, 0, 0], [1, 0, 0], [0, 0.8, 0]])
    samples = np.array([[0, 1], [0, 2], [1, 2], [1, 1]])
    for sides in ((p, q), (q, p)):
        assert MatchedPoints(*sides, 1.0).with_like_edges(samples, 0.9).tolist() == [[0, 1], [1, 2]]
        for distance, count in ((0.2, 1), (0.05, 0)):
            assert len(MatchedPoints(*sides, distance).motions_of(np.array([[0, 1, 2]]), ANY)) == count


def test_a_motion_scores_the_more_the_nearer_its_inliers_are():
    p = np.random.default_rng(0).normal(size=(4, 3))
    matched = MatchedPoints(p, p + np.outer([0, 0.5, 0.9, 2], [1, 0, 0]), 1.0)
    assert matched.scores(np.eye(4)[None]) == pytest.approx([1 + 0.75 + 0.19])
    np.testing.assert_allclose(matched.inlier_sums(np.eye(4)[None])[0, :2], [1.94, 3])
    for count, moved in ((2, 0.0), (4, 0.5)):  # three determine a motion
        refitted = MatchedPoints(p[:count], p[:count] + np.array([0.5, 0, 0]), 1.0).refit(np.eye(4)[None])
        assert refitted[0, 0, 3] == pytest.approx(moved)


@pytest.mark.parametrize(("inlier_ratio", "n"), [(1.0, 3), (0.05, 3), (0.5, 4)])
def test_the_motion_is_found_among_outliers(inlier_ratio, n):
    source, target, T = correspondences(inlier_ratio=inlier_ratio)
    estimate, *_ = ransac(source, target, distance=0.0375, n=n)
    assert translation_error(estimate, T) < 1e-3
    assert rotation_error(estimate, T) < 0.1


def test_all_inliers_are_used_against_noise():
    source, target, T = correspondences(inlier_ratio=0.5, noise=0.01)
    estimate, *_ = ransac(source, target, distance=0.0375)
    # 1 cm of noise over 500 points: 1.7 cm / sqrt(500) = 0.8 mm.
    assert translation_error(estimate, T) < 0.003
    assert rotation_error(estimate, T) < 0.15


def test_far_from_the_origin():
    source, target, _ = correspondences(inlier_ratio=0.3, offset=np.array([5e6, 4e5, 100.0]))
    estimate, *_ = ransac(source, target, distance=0.0375)
    residuals = np.linalg.norm(transform(estimate, source[:300]) - target[:300], axis=1)
    assert residuals.max() < 1e-3


@pytest.mark.parametrize(("P", "growth"), [(0, 1), (1, 1), (2, 1), (50, 3)])  # then no edge keeps its length
def test_too_few_correspondences_give_the_identity(P, growth):
    source = np.random.default_rng(0).normal(size=(P, 3))
    np.testing.assert_array_equal(ransac(source, growth * source, distance=0.1), np.eye(4)[None])


def test_clean_matches_need_few_samples(caplog):
    source, target, _ = correspondences(inlier_ratio=0.9)
    with caplog.at_level("DEBUG"):
        ransac(source, target, distance=0.0375, iterations=1_000_000)
    assert caplog.text.count("samples of 1000 matches") == 1  # batches


def test_the_motions_differ_and_are_those_of_the_seed():
    sides = correspondences(P=200, inlier_ratio=0.1, noise=0.03)[:2]
    found, again, other = (ransac(*sides, distance=0.15, iterations=5000, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(found, other)
    assert len(found) == 12
    apart = [rms_displacement(sides[0], *both) for both in combinations(found, 2)]
    assert min(apart) > 3 * 0.15


@pytest.fixture
def alternatives():
    """25 of 200 matches agree on a wrong motion, 20 on the right one, which aligns the surfaces."""
    rng = np.random.default_rng(5)
    source = rng.uniform(-1, 1, (200, 3))
    T, T_wrong = (se3(random_rotation(rng), rng.normal(size=3)) for _ in range(2))
    target = transform(T, source)
    target[20:] = target[rng.permutation(180) + 20]  # the right points, wrongly matched
    target[20:45] = transform(T_wrong, source[20:45])
    return source, target, T, T_wrong


def test_what_clouds_say_of_a_motion_outweighs_a_few_matches_more(alternatives):
    source, target, T, T_wrong = alternatives

    def are_right(motions):
        """True for right motions, in the frames of the clouds."""
        return np.array([translation_error(motion, T) < 0.01 for motion in motions], dtype=float)

    estimate, *_ = ransac(source, target, distance=0.05)
    assert translation_error(estimate, T_wrong) < 1e-6
    for (judge, weight), share in product((("agreement", 0.7), ("free_space", -3.0)), (0.9, 1.1)):
        said = share * 4 / 200 / weight  # against four matches of 200
        judges = {judge: lambda motions, said=said: said * are_right(motions)}
        estimate, *_ = ransac(source, target, distance=0.05, **judges)
        assert translation_error(estimate, T if share > 1 else T_wrong) < 1e-6


def test_where_few_matches_are_right_more_are_asked():
    """3 of 100 mutual and 30 of 1,000 one-way matches are right: too few for samples of three."""
    source, target, T = correspondences(P=1000, inlier_ratio=0.03, noise=0.005)
    rows = np.r_[:3, 900:997]

    def are_right(motions):
        return np.array([translation_error(motion, T) < 0.1 for motion in motions], dtype=float)

    given = {"distance": 0.0375, "iterations": 1000, "agreement": are_right}
    estimate, *_ = ransac(source[rows], target[rows], **given)
    assert translation_error(estimate, T) >= 0.1
    estimate, *_ = ransac(source[rows], target[rows], **given, one_way=(source, target))
    assert translation_error(estimate, T) < 0.05


@pytest.mark.parametrize(("inlier_ratio", "asked"), [(0.35, []), (0.25, [0.0375])])
def test_where_many_matches_are_right_no_more_are_asked(monkeypatch, inlier_ratio, asked):
    calls, none = [], np.empty((0, 4, 4))
    monkeypatch.setattr(estimation, "_consistent", lambda *given: calls.append(given[2]) or none)
    source, target, T = correspondences(inlier_ratio=inlier_ratio)
    estimate, *_ = ransac(source, target, distance=0.0375, one_way=(source, target))
    assert translation_error(estimate, T) < 1e-3
    assert calls == asked
