"""Evidence and described clouds for tests, changed where a test says so."""

from typing import Any

import numpy as np

from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.judge.evidence import Evidence
from pcreg.registration.judge.observability import DegenerateDirection, Observability

FIRM = Observability(0.1, ())
CORRIDOR = Observability(0.001, (DegenerateDirection("slide", (1.0, 0.0, 0.0)),))


def evidence(**changed: Any) -> Evidence:
    """Evidence with strong values in favour of a motion, and none against it."""
    fields = {
        "matches": 1000,
        "inliers": 300,
        "inlier_thickness": 12.0,
        "overlap": 0.6,
        "rmse": 0.01,
        "plane_rmse": 0.2,
        "free_space_violation": 0.01,
        "contradiction": 0.004,
        "curved_contradiction": 0.05,
        "same_side_ratio": 0.99,
        "observability": FIRM,
    }
    return Evidence(**fields | changed)


def described(points: np.ndarray, normals: np.ndarray) -> DescribedCloud:
    """A surface seen from the origin, with uninformative features."""
    rows, features = np.arange(len(points)), np.zeros((len(points), 1))
    return DescribedCloud(points, features, rows, points, normals, np.zeros(len(points)), np.zeros(3), True)
