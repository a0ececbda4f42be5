"""One interactive HTML page of a registration: clouds before and after, and matches.

It contains everything it shows, loads nothing, and draws on a plain canvas, without a graphics card.
"""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.arrays import every_nth
from pcreg.geometry.se3 import se3, transform
from pcreg.registration.result import Registration
from pcreg.viz.overview import principal_axes, residuals, shown
from pcreg.viz.page import write_page

MAX_LINES = 400  # of matches; more hide the clouds
COORDINATE_STEPS = 65_535  # across a cloud: 2 mm in 120 m


def viewer(
    source: np.ndarray,
    target: np.ndarray,
    registration: Registration,
    path: str | Path,
    *,
    title: str,
    facts: Mapping[str, Any],
) -> None:
    """Write the page of a registration of source (N, 3) to target (M, 3), atomically.

    `facts` are shown beside it. Of a cloud 150,000 points are drawn at most, and 400 matches.
    """
    source, target = shown(source), shown(target)
    limit = 2 * registration.voxel
    distance = residuals(source, target, registration.T_target_source, limit)
    distance = np.where(np.isfinite(distance), np.round(254 * distance / limit), 255)
    T_page_target = principal_axes(target)
    own = source.mean(0)  # coordinates of a map have more digits than a picture needs
    T_source_own = se3(np.eye(3), own)
    lines = every_nth(registration.matched_points, MAX_LINES)
    ends = np.stack([lines[:, 0] - own, transform(T_page_target, lines[:, 1])], axis=1)
    content = {
        "source": packed(source - own),
        "target": packed(transform(T_page_target, target)),
        "residual": _encoded(distance.astype("u1")),
        "before": (T_page_target @ T_source_own).ravel().tolist(),
        "after": (T_page_target @ registration.T_target_source @ T_source_own).ravel().tolist(),
        "lines": ends.round(4).ravel().tolist(),
        "limit": limit,
    }
    write_page(path, "pcreg.viz", "viewer.html", title=title, facts=facts, content=content)


def packed(points: np.ndarray) -> dict[str, Any]:
    """Points (N, 3) as whole numbers of 16 bits between the corners of their box."""
    low = points.min(0)
    step = np.maximum(np.ptp(points, axis=0), 1e-9) / COORDINATE_STEPS
    return {
        "low": low.tolist(),
        "step": step.tolist(),
        "rows": _encoded(np.round((points - low) / step).astype("<u2")),
    }


def _encoded(values: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode()
