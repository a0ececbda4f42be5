"""Worked examples: every number was computed by hand or independently of the code under test."""

import numpy as np
import pytest

from pcreg.evaluation import metrics
from pcreg.geometry.se3 import inverse, residuals, rms_displacement, rotation_about, se3

X, _, Z = np.eye(3)
LOOSE = (2.0, 5.0)


def rotated(axis, degrees, t=(0, 0, 0)):
    return se3(rotation_about(axis, degrees), np.array(t, dtype=float))


def means(RTE, RRE):
    """Mean RTE and RRE by mask."""
    kept = metrics.masks(RTE, RRE, LOOSE)
    return {name: (metrics.mean(RTE[a]), metrics.mean(RRE[b])) for name, (a, b) in kept.items()}


def test_a_registration_not_found_passes_no_gate_and_stays_in_the_denominator():
    RTE, RRE = np.array([0.1, np.nan]), np.array([0.2, np.nan])
    assert metrics.within(RTE, RRE, (np.inf, np.inf)).tolist() == [True, False]
    assert metrics.mean(metrics.within(RTE, RRE, LOOSE)) == 0.5
    assert set(means(RTE, RRE).values()) == {(0.1, 0.2)}
    assert np.isnan(list(means(RTE[1:], RRE[1:]).values())).all()


def test_inlier_ratio():
    source = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    T = rotated(Z, 90, (1, 2, 3))
    target = np.array([[1, 2, 3], [1, 3, 3], [0, 2, 3], [1, 2, 4]], dtype=float)
    target += [[0.05, 0, 0], [0, 0.099, 0], [0.101, 0, 0], [0.2, 0.2, 0]]
    assert metrics.fraction_below(residuals(T, source, target), 0.1) == 0.5
    assert metrics.fraction_below(residuals(T, source, target), 0.3) == 1.0
    assert metrics.fraction_below(residuals(inverse(T), source, target), 6.0) == 0.0
    assert metrics.fraction_below(np.array([0.1, 0.2]), 0.1) == 0.0
    assert metrics.fraction_below(np.empty(0), 0.1) == 0.0


POINTS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 2], [1, 1, 1]], dtype=float)
INFORMATION = np.array(
    [
        [4, 0, 0, 0, 3, -2],
        [0, 4, 0, -3, 0, 2],
        [0, 0, 4, 2, -2, 0],
        [0, -3, 2, 7, -1, -1],
        [3, 0, -2, -1, 7, -1],
        [-2, 2, 0, -1, -1, 4],
    ],
    dtype=float,
)


@pytest.mark.parametrize(
    ("error", "official", "true"),
    [
        (rotated(Z, 0, (0.15, 0, 0)), 0.15, 0.15),
        (rotated(Z, 0, (0, 0.25, 0)), 0.25, 0.25),
        (rotated(Z, 10), 0.087155743, 0.174311485),  # rotations count half
        (rotated(X, 15, (0.05, 0, 0)), 0.179763461, 0.348940694),  # official: registered; true: not
    ],
)
def test_the_official_recall_is_lenient_on_rotations(error, official, true):
    truth = rotated(Z, 30, (0.5, -0.2, 0.1))
    assert metrics.information_rmse(truth @ error, truth, INFORMATION) == pytest.approx(official, abs=1e-9)
    assert rms_displacement(POINTS, truth @ error, truth) == pytest.approx(true, abs=1e-9)


def test_the_sign_of_the_quaternion_does_not_matter():
    # Nearly half a turn either way: the same motion but for 0.2 degrees.
    one, other = (metrics.information_rmse(rotated(Z, a), np.eye(4), INFORMATION) for a in (179.9, -179.9))
    assert one == pytest.approx(other, rel=1e-6)


def test_an_empty_information_matrix_is_a_failure():
    assert np.isnan(metrics.information_rmse(np.eye(4), np.eye(4), np.zeros((6, 6))))
