import sys

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, rotation_error, se3, translation_error
from pcreg.registration.strategy import gicp
from pcreg.registration.strategy.gicp import Fit, Scan, register_from, register_scans
from pcreg.runtime.errors import InputError
from tests.datasets.street import street_pose, street_scan

pytest.importorskip("small_gicp", reason="small_gicp is not installed (the odometry extra)")
VOXEL = 0.3


@pytest.fixture(scope="module")
def scans():
    return [Scan(street_scan(street_pose(n), seed=n), VOXEL) for n in (0, 4)]


def test_a_pair_is_registered_from_a_rough_guess(scans):
    truth = inverse(street_pose(0)) @ street_pose(4)
    guess = truth @ se3(rotation_about([1, 2, 3], 5), np.array([0.5, -0.4, 0.2]))
    target, source = scans
    fit = register_scans(source, target, guess)
    assert translation_error(fit.T_target_source, truth) < 0.03
    assert rotation_error(fit.T_target_source, truth) < 0.2
    assert fit.overlap > 0.7
    assert fit.free_space_violation < 0.05
    assert 0.5 < fit.correction < 3  # 0.67 m at the sensor, and more where 5 degrees reach far
    assert fit.rejection() == ""
    again = register_scans(source, target, guess)
    assert np.array_equal(again.T_target_source, fit.T_target_source)


def test_a_registration_that_ended_elsewhere_is_rejected(scans):
    target, source = scans
    truth = inverse(street_pose(0)) @ street_pose(4)
    backwards = truth @ se3(rotation_about([0, 0, 1], 160), np.array([0.0, 0.0, 0.0]))
    fit = register_scans(source, target, backwards)
    assert rotation_error(fit.T_target_source, truth) > 20
    assert fit.rejection() == "contradict what the sensors saw"


@pytest.mark.parametrize(
    ("overlap", "free_space_violation", "correction", "reason"),
    [
        (0.31, 0.08, 0.8, ""),
        (0.29, 0.08, 0.8, "overlap by less than 0.3"),
        (0.31, 0.10, 0.8, "contradict what the sensors saw"),
        (0.31, 0.08, 1.0, "moved by more than 0.9 m"),
    ],
)
def test_each_rejection_has_its_threshold(monkeypatch, overlap, free_space_violation, correction, reason):
    fit = Fit(np.eye(4), overlap, free_space_violation, correction)
    assert fit.rejection(0.3, max_correction=0.9) == reason
    monkeypatch.setattr(gicp, "register_scans", lambda *given: given[2])  # in place of guesses: their fits
    less = Fit(np.eye(4), 0.1, 1.0, 0.0)
    assert register_from(None, None, less, fit, less) is fit


def test_scans_without_points_and_a_missing_package_are_bad_input(monkeypatch):
    with pytest.raises(InputError, match=r"scan_7: 1 points are left at voxel 0.3 m.*smaller data.voxel"):
        Scan(np.zeros((500, 3)), VOXEL, "scan_7")
    monkeypatch.setitem(sys.modules, "small_gicp", None)
    with pytest.raises(InputError, match=r"pip install .*\[odometry\]'"):
        Scan(street_scan(street_pose(0), seed=0), VOXEL)
