"""Evidence for tests, changed where a test says so."""

from typing import Any

from pcreg.registration.evidence import Evidence
from pcreg.registration.observability import DegenerateDirection, Observability

FIRM = Observability(0.1, ())
CORRIDOR = Observability(0.001, (DegenerateDirection("slide", (1.0, 0.0, 0.0)),))


def evidence(**changed: Any) -> Evidence:
    """Plenty in favour of a motion, and nothing against it."""
    fields = {
        "matches": 1000,
        "inliers": 300,
        "overlap": 0.6,
        "rmse": 0.01,
        "viewpoints_known": True,
        "free_space_violation": 0.01,
        "same_side_ratio": 0.99,
        "observability": FIRM,
    }
    return Evidence(**fields | changed)
