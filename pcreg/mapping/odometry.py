"""Odometry: the motion from each of consecutive scans to the one before it."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pcreg.mapping.graph import SURE_CONFIDENCE
from pcreg.mapping.submap import Scan
from pcreg.registration.batch import Pair, Work, name_of
from pcreg.registration.clouds.local_frame import between_local
from pcreg.registration.judge.covariance import covariance
from pcreg.registration.judge.overlap import Overlap
from pcreg.registration.strategy import gicp
from pcreg.runtime.errors import attempted
from pcreg.runtime.records import Records


def steps(
    work: Work, paths: Sequence[str], scans: Sequence[Scan], voxel: float, records: Records
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number n and record of each step of odometry, from scan n to n - 1; `voxel` in metres.

    A step starts from the motion of the step before or, if that fails, from the identity.
    """
    motion = np.eye(4)

    @lru_cache(maxsize=2)  # the next step needs one of the two scans again
    def scan_of(path: str) -> gicp.Scan:
        return gicp.Scan(work.cloud(path).cloud.points, voxel, path)

    for n, pair in enumerate(zip(paths[1:], paths[:-1], strict=True), start=1):
        name = f"odometry at {voxel:g} m: {name_of(pair)}"  # further scans may change the voxel size
        record = records.by_pair.get(name)
        if record is None or record["stamp"] != work.stamp(pair):
            record = _step(scan_of, motion, scans[n], scans[n - 1], voxel, pair)
            records.add(record | {"pair": name, "stamp": work.stamp(pair)})
        motion = np.array(record["T_target_source"]) if record["registered"] else np.eye(4)
        yield n, record


def _step(
    scan_of: Callable[[str], gicp.Scan], guess: np.ndarray, a: Scan, b: Scan, voxel: float, pair: Pair
) -> dict[str, Any]:
    """The record of one step, from scan a to b, whose files are the pair."""
    record = {"source": pair[0], "target": pair[1], "registered": False, "confidence": 0.0, "error": ""}
    fit, error = attempted(lambda: gicp.register_from(*map(scan_of, pair), guess, np.eye(4)))
    if fit is None:
        return record | {"reason": f"odometry: {error}"}
    if rejection := fit.rejection():
        return record | {"reason": f"odometry: the scans {rejection}"}
    local = between_local(fit.T_target_source, a.frame, b.frame)
    overlap = Overlap.of(a.surface, b.surface, b.normals, local, voxel)
    return record | {
        "registered": True,
        "confidence": SURE_CONFIDENCE,  # the bounds let none of 81 wrong registrations pass (gicp.py)
        "reason": f"odometry: {fit.overlap:.0%} of the scan lies on the one before it",
        "T_target_source": fit.T_target_source.tolist(),
        "local_covariance": covariance(overlap, local, voxel).tolist(),
    }
