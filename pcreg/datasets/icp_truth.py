"""Corrections of odometry poses by ICP, computed once and kept in files.

The settings are FCGF's: one point per 5 cm voxel, partners within 0.2 m, point to point, at most 200
iterations.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.runtime.progress import progress
from pcreg.runtime.records import code_fingerprint
from pcreg.runtime.workers import Workers, executor_of, map_unordered

SETTINGS = {"method": "point to point", "voxel": 0.05, "distance": 0.2, "iterations": 200}


@dataclass(frozen=True)
class Start:
    """A pair of scans with its initial motion, and the file that keeps its correction."""

    path: Path
    source: Path
    target: Path
    T_target_source: np.ndarray  # (4, 4) float64


def icp(source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> np.ndarray:
    """The motion (4, 4) that takes source (N, 3), already moved by T_target_source, onto target (M, 3)."""
    import open3d

    registration = open3d.pipelines.registration
    moved = transform(T_target_source, source[voxel_downsample(source, SETTINGS["voxel"])])
    target = target[voxel_downsample(target, SETTINGS["voxel"])]
    return registration.registration_icp(
        *(open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points)) for points in (moved, target)),
        SETTINGS["distance"],
        np.eye(4),
        registration.TransformationEstimationPointToPoint(),
        registration.ICPConvergenceCriteria(max_iteration=SETTINGS["iterations"]),
    ).transformation


def corrections(starts: Sequence[Start], workers: Workers = None) -> list[np.ndarray]:
    """icp() of every pair (4, 4), taken from its file if it was computed before.

    The rest is computed by `workers`: processes, one per core by default, 0 for none, or an executor. Each
    pair is kept as soon as it is done. A file that is damaged is computed anew. Raises InputError for a file
    that other code, other settings or another start made, and if files cannot be written.
    """
    todo = [start for start in starts if _read(start) is None]
    with executor_of(workers) as executor:
        for _ in progress(map_unordered(executor, _correct, (), todo), "ground truth by ICP", len(todo)):
            pass
    return [_read(start) for start in starts]


def _correct(start: Start) -> None:
    source, target = (read_cloud(path).points for path in (start.source, start.target))
    correction = icp(source, target, start.T_target_source)
    record = {"settings": _settings(), "start": start.T_target_source.tolist()}
    record |= {"correction": correction.tolist()}
    try:
        with replacing(start.path) as temporary:
            temporary.write_text(json.dumps(record) + "\n")
    except InputError as error:
        raise InputError(f"{error} with data.cache=FOLDER") from error


def _read(start: Start) -> np.ndarray | None:
    """The correction that was kept; None if there is none or the file is damaged."""
    try:
        record = json.loads(start.path.read_text())
        begun, correction = (np.array(record[key], dtype=np.float64) for key in ("start", "correction"))
        settings = dict(record["settings"])
        usable = begun.shape == correction.shape == (4, 4) and np.isfinite(correction).all()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not usable:
        return None
    remedy = "name another folder with data.cache=FOLDER, or delete this one to compute it anew"
    if settings != _settings():
        raise InputError(f"{start.path}: made by other code ({settings}, here {_settings()}); {remedy}")
    if not np.allclose(begun, start.T_target_source, rtol=0, atol=1e-9):
        raise InputError(f"{start.path}: made from other poses or another calibration; {remedy}")
    return correction


@cache
def _settings() -> dict[str, str | float]:
    installed = packages_distributions()["open3d"][0]  # builds of Open3D differ in their name
    return SETTINGS | {
        "code": code_fingerprint("arrays", "geometry", "io", "datasets/icp_truth.py"),
        "open3d": version(installed),
    }
