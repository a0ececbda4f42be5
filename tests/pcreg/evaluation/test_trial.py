"""Draws and matches under each kind of protocol."""

from dataclasses import replace

import numpy as np
import pytest

from pcreg.evaluation.estimators import Matched
from pcreg.evaluation.protocol import Protocol
from pcreg.evaluation.trial import _trial, draws
from pcreg.features.base import Description
from pcreg.geometry.se3 import se3
from pcreg.io.pairs import Pair
from pcreg.registration.matching.nearest import Matches, match_all

POINTS = Protocol(name="points", voxel=0.1, samples=(100, 40), gates=[(2, 5)], mutual=False)
MATCHES = replace(POINTS, draw="matches", mutual=True)
PAIR = Pair("a", "b", np.eye(4))


@pytest.fixture(scope="module")
def clouds():
    """Two clouds of 150 points whose features agree in part; a feature is its point and some noise."""
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(150, 3))
    sides = (points, rng.permutation(points))
    return [
        Description(side, (side + rng.normal(scale=0.02, size=side.shape)).astype(np.float32))
        for side in sides
    ]


def rows_of(points, cloud):
    """The rows of `cloud` that hold these points."""
    return [int(np.flatnonzero((cloud.points == point).all(1))[0]) for point in points]


def test_the_figures_of_a_trial():
    """Inlier ratios count matches within 20 cm by the truth, inliers those within 15 cm by the result."""
    points, off = 9.0 * np.eye(3)[[0, 0, 1, 1, 2]], np.array([0.0, 0.14, 0.16, 0.19, 0.21])
    clouds = (Description(side, np.zeros((5, 1))) for side in (points, points + off[:, None] * [1, 0, 0]))
    rows = np.column_stack([np.arange(5)] * 2)
    matched = Matched(*clouds, Matches(rows, rows), mutual=rows[[0, 2, 4]], seconds=0.0)
    found = _trial(PAIR, points, matched, se3(np.eye(3), np.array([0.03, 0, 0])), POINTS)
    assert (found["IR"], found["IR_one_way"], found["matches"], found["inliers"]) == (2 / 3, 4 / 5, 5, 3)
    assert (found["RTE"], found["RRE"], found["rmse"]) == pytest.approx((0.03, 0, 0.03))


def test_points_are_drawn_at_random_and_a_smaller_draw_is_part_of_a_larger(clouds):
    found = {(n, seed): matched for n, seed, matched in draws(PAIR, *clouds, POINTS, (0, 1))}
    again = {(n, seed): matched for n, seed, matched in draws(PAIR, *clouds, POINTS, (0,))}
    assert list(found) == [(100, 0), (40, 0), (100, 1), (40, 1)]
    drawn = {key: rows_of(matched.source.points, clouds[0]) for key, matched in found.items()}
    assert all(len(set(rows)) == n for (n, _), rows in drawn.items())  # without replacement
    assert set(drawn[40, 0]) < set(drawn[100, 0])
    assert set(drawn[40, 0]) != set(drawn[40, 1])
    assert drawn[40, 0] != rows_of(found[40, 0].target.points, clouds[1])  # each cloud has a draw of its own
    np.testing.assert_array_equal(again[40, 0].source.points, found[40, 0].source.points)


@pytest.mark.parametrize("mutual_only", [True, False])
def test_drawn_points_are_matched_among_themselves(clouds, mutual_only):
    protocol = replace(POINTS, mutual=mutual_only)
    matched = next(draws(PAIR, *clouds, protocol, (0,)))[2]
    a, b = matched.source, matched.target
    for drawn, cloud in zip((a, b), clouds, strict=True):
        np.testing.assert_array_equal(drawn.features, cloud.features[rows_of(drawn.points, cloud)])
    np.testing.assert_array_equal(matched.matches.one_way, match_all(a.features, b.features).one_way)
    np.testing.assert_array_equal(matched.mutual, match_all(a.features, b.features).rows)
    expected = matched.mutual if mutual_only else matched.matches.one_way
    np.testing.assert_array_equal(matched.matches.rows, expected)


def test_matches_are_drawn_from_the_mutual_ones_of_whole_clouds(clouds):
    everything = match_all(clouds[0].features, clouds[1].features).rows
    assert 60 < len(everything) < 150
    all_points, own_points = (
        next(matched for n, _, matched in draws(PAIR, *clouds, replace(MATCHES, fit=fit), (0,)) if n == 40)
        for fit in ("all", "drawn")
    )
    assert len(all_points.matches.rows) == len(set(map(tuple, all_points.matches.rows))) == 40
    assert set(map(tuple, all_points.matches.rows)) < set(map(tuple, everything))
    assert len(all_points.source.points) == 150
    assert len(own_points.source.points) == len(own_points.target.points) == 40
    np.testing.assert_array_equal(own_points.source.points, clouds[0].points[all_points.matches.rows[:, 0]])
    np.testing.assert_array_equal(own_points.matches.rows, np.column_stack([np.arange(40)] * 2))
