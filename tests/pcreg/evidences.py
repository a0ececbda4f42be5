"""Evidence for tests, changed where a test says so."""

from typing import Any

from pcreg.registration.evidence import Evidence
from pcreg.registration.observability import Freedom, Hold

FIRM = Hold(0.1, ())
CORRIDOR = Hold(0.001, (Freedom("slide", (1.0, 0.0, 0.0)),))


def evidence(**changed: Any) -> Evidence:
    """Plenty in favour of a motion, and nothing against it."""
    fields = {
        "matches": 1000,
        "inliers": 300,
        "overlap": 0.6,
        "rmse": 0.01,
        "viewpoints_known": True,
        "intrusion": 0.01,
        "facing": 0.99,
        "hold": FIRM,
    }
    return Evidence(**fields | changed)
