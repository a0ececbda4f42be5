"""Corrections of odometry poses by ICP, computed once and kept in a file of records.

The settings are FCGF's: one point per 5 cm voxel, partners within 0.2 m, point to point, at most 200
iterations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records, code_fingerprint
from pcreg.runtime.workers import Workers, executor_of, map_unordered

SETTINGS = {"method": "point to point", "voxel": 0.05, "distance": 0.2, "iterations": 200}
REMEDY = "name another folder with data.cache=FOLDER, or delete this file to compute it anew"


@dataclass(frozen=True)
class Start:
    """A pair of scans with its initial motion."""

    name: str
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


def corrections(starts: Sequence[Start], path: Path, workers: Workers = None) -> list[np.ndarray]:
    """`icp` of every pair (4, 4), taken from the records in `path` if it was computed before.

    The rest is computed by `workers`: processes, one per core by default, 0 for none, or an executor. Each
    pair is kept as soon as it is done. Raises InputError for records that other code, other settings or
    another start made, and OutputError if they cannot be written.
    """
    settings = SETTINGS | {
        "code": code_fingerprint("arrays", "geometry", "io", "datasets/icp_truth.py"),
        "open3d": version(packages_distributions()["open3d"][0]),  # builds of Open3D differ in their name
    }
    records = Records(path, settings, REMEDY)
    for start in starts:
        record = records.by_pair.get(start.name)
        if record and not np.allclose(record["start"], start.T_target_source, rtol=0, atol=1e-9):
            raise InputError(f"{path}: made from other poses or another calibration; {REMEDY}")
    todo = [start for start in starts if start.name not in records.by_pair]
    with executor_of(workers) as executor:
        computed = map_unordered(executor, _correct, (), todo)
        for _, record in progress(computed, "ground truth by ICP", len(todo)):
            try:
                records.add(record)
            except OutputError as error:
                raise OutputError(f"{error} with data.cache=FOLDER") from error
    return [np.array(records.by_pair[start.name]["correction"]) for start in starts]


def _correct(start: Start) -> dict[str, Any]:
    source, target = (read_cloud(path).points for path in (start.source, start.target))
    correction = icp(source, target, start.T_target_source)
    return {"pair": start.name, "start": start.T_target_source.tolist(), "correction": correction.tolist()}
