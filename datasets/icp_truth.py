"""What ICP adds to an odometry pose to make it ground truth: computed once, then kept in a file.

The settings are FCGF's (one point per 5 cm voxel, partners within 0.2 m, point to point, at most 200
iterations), so that results stand beside published ones.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pcreg.descriptors import thin
from pcreg.errors import InputError
from pcreg.files import replacing
from pcreg.geometry import transform

SETTINGS = {"method": "point to point", "voxel": 0.05, "distance": 0.2, "iterations": 200}


def icp(source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> np.ndarray:
    """The motion (4, 4) that takes source (N, 3), already moved by T_target_source, onto target (M, 3)."""
    import open3d

    registration = open3d.pipelines.registration
    moved = transform(T_target_source, source[thin(source, SETTINGS["voxel"])])
    target = target[thin(target, SETTINGS["voxel"])]
    return registration.registration_icp(
        *(open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points)) for points in (moved, target)),
        SETTINGS["distance"],
        np.eye(4),
        registration.TransformationEstimationPointToPoint(),
        registration.ICPConvergenceCriteria(max_iteration=SETTINGS["iterations"]),
    ).transformation


def cached_icp(
    path: Path, clouds: Callable[[], tuple[np.ndarray, np.ndarray]], T_target_source: np.ndarray
) -> np.ndarray:
    """icp(source, target, T_target_source), taken from `path` if it was computed there before.

    `clouds` reads source and target if they are needed. A file that is damaged, or was made by other
    settings or from another start, is computed anew. Raises InputError if `path` cannot be written.
    """
    kept = _read(path, T_target_source)
    if kept is not None:
        return kept
    correction = icp(*clouds(), T_target_source)
    record = {"settings": SETTINGS, "start": T_target_source.tolist(), "correction": correction.tolist()}
    try:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(record) + "\n")
    except InputError as error:
        raise InputError(f"{error} with data.cache=FOLDER") from error
    return correction


def _read(path: Path, T_target_source: np.ndarray) -> np.ndarray | None:
    try:
        record = json.loads(path.read_text())
        start, correction = (np.array(record[key], dtype=np.float64) for key in ("start", "correction"))
        same = record["settings"] == SETTINGS and np.allclose(start, T_target_source, rtol=0, atol=1e-9)
        usable = correction.shape == (4, 4) and np.isfinite(correction).all()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return correction if same and usable else None
