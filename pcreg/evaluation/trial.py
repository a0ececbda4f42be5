"""One pair of a benchmark: draw, match, estimate, and compare with the ground truth.

A trial is one number of samples with one seed. Seconds are CPU time.
"""

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from pcreg.evaluation import metrics
from pcreg.evaluation.estimators import Estimator, Matched
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.features.cache import read_described
from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.se3 import residuals, rms_displacement, rotation_error, translation_error
from pcreg.io.pairs import Pair
from pcreg.registration.matching.nearest import Matches, match_all

TAU_FACTORS = np.arange(1, 31) / 10  # times tau1: thresholds of the curve of inlier ratios


def score(
    files: Mapping[str, Path], protocol: Protocol, estimator: Estimator, seeds: Sequence[int], pair: Pair
) -> dict[str, Any]:
    """Record of a pair, by the `files` with descriptions of clouds; errors are None without a motion."""
    described = [read_described(files[name]) for name in (pair.source, pair.target)]
    clouds, trials = [description for description, _ in described], []
    for samples, seed, matched in draws(pair, *clouds, protocol, seeds):
        start, T = process_time(), None
        if len(matched.matches.rows) >= protocol.n:
            # Open3D takes seeds of 31 bits.
            T = estimator.estimate(matched, protocol, _checksum(f"{seed} {pair.name} {samples}") >> 1)
        seconds = {"match": matched.seconds, "estimate": process_time() - start}
        drawn = {"samples": samples, "seed": seed}
        trials.append(drawn | _trial(pair, clouds[0].points, matched, T, protocol) | {"seconds": seconds})
    points = [cloud.points for cloud in clouds]
    distance = OVERLAP_DISTANCE * protocol.voxel
    return fields_of(pair) | {
        "overlap_measured": measured_overlap(*points, pair.T_target_source, distance),
        "points": list(map(len, points)),
        "describe_seconds": sum(seconds for _, seconds in described),
        "trials": trials,
    }


def fields_of(pair: Pair) -> dict[str, Any]:
    """The fields of a record that depend on the pair alone."""
    own = {name: getattr(pair, name) for name in ("source", "target", "scene", "consecutive", "overlap")}
    return {"pair": pair.name, **own, "truth": pair.T_target_source.tolist()}


def draws(
    pair: Pair, source: Description, target: Description, protocol: Protocol, seeds: Sequence[int]
) -> Iterator[tuple[int | None, int, Matched]]:
    """Yield samples, seed and matches of every trial; with one seed, larger draws contain smaller ones."""
    if protocol.draw == "matches":
        start = process_time()
        found = match_all(source.features, target.features)
        seconds = process_time() - start
        for seed in seeds:
            order = _order(seed, pair.name, len(found.rows))
            for samples in protocol.samples:
                drawn = Matches(found.rows[order[:samples]])
                yield samples, seed, _of_matches(source, target, drawn, protocol, seconds)
        return
    named = (pair.source, source), (pair.target, target)
    for seed in seeds:
        orders = [_order(seed, name, len(cloud.points)) for name, cloud in named]
        for samples in protocol.samples:
            rows = [order[:samples] for order in orders]
            yield samples, seed, _of_points(source, target, rows, protocol)


def _order(seed: int, name: str, count: int) -> np.ndarray:
    """A random order (count,) of rows by seed and name."""
    return np.random.default_rng([seed, _checksum(name)]).permutation(count)


def _of_points(
    source: Description, target: Description, drawn: list[np.ndarray], protocol: Protocol
) -> Matched:
    """Matches among the points in these rows of either cloud."""
    start = process_time()
    a, b = (cloud.of_rows(rows) for cloud, rows in zip((source, target), drawn, strict=True))
    found = match_all(a.features, b.features)
    seconds = process_time() - start
    matches = found if protocol.mutual else replace(found, rows=found.one_way)
    return Matched(a, b, matches, found.rows, seconds)


def _of_matches(
    source: Description, target: Description, found: Matches, protocol: Protocol, seconds: float
) -> Matched:
    """Mutual matches of whole clouds, with the points that they join or, by protocol.fit, all points."""
    if protocol.fit == "all":
        return Matched(source, target, found, found.rows, seconds)
    own = np.column_stack([np.arange(len(found.rows))] * 2)
    a, b = (cloud.of_rows(rows) for cloud, rows in zip((source, target), found.rows.T, strict=True))
    return Matched(a, b, replace(found, rows=own), own, seconds)


def _trial(
    pair: Pair, points: np.ndarray, matched: Matched, T: np.ndarray | None, protocol: Protocol
) -> dict[str, Any]:
    """The figures of one trial; `points` (N, 3) are all described points of the source."""
    distances = _distances(matched, matched.mutual, pair.T_target_source)
    curve = [metrics.fraction_below(distances, protocol.tau1 * factor) for factor in TAU_FACTORS]
    trial: dict[str, Any] = {
        "matches": len(matched.matches.rows),
        "IR": metrics.fraction_below(distances, protocol.tau1),
        "IR_curve": [round(fraction, 4) for fraction in curve],
    }
    if matched.matches.one_way is not None:
        one_way = _distances(matched, matched.matches.one_way, pair.T_target_source)
        trial["IR_one_way"] = metrics.fraction_below(one_way, protocol.tau1)
    fitted = T is not None and _distances(matched, matched.matches.rows, T) < protocol.distance
    return trial | {"inliers": int(np.sum(fitted))} | motion_errors(pair, T, points)


def motion_errors(pair: Pair, T: np.ndarray | None, points: np.ndarray) -> dict[str, Any]:
    """The motion of a trial and its errors, the RMSE over `points` (N, 3) of the source."""
    trial: dict[str, Any] = dict.fromkeys(("RTE", "RRE", "rmse", "T_target_source"))
    if pair.information is not None:
        trial["information_rmse"] = None
    if T is None:
        return trial
    motions = pair.before_moves(T), pair.before_moves(pair.T_target_source)
    trial["RTE"], trial["RRE"] = translation_error(*motions), rotation_error(*motions)
    trial["rmse"] = rms_displacement(points, T, pair.T_target_source)
    if pair.information is not None:
        error = metrics.information_rmse(*motions, pair.information)
        trial["information_rmse"] = None if np.isnan(error) else error
    return trial | {"T_target_source": T.tolist()}


def _distances(matched: Matched, pairs: np.ndarray, T_target_source: np.ndarray) -> np.ndarray:
    """Metres (P,) between matched points once the source is moved."""
    return residuals(T_target_source, matched.source.points[pairs[:, 0]], matched.target.points[pairs[:, 1]])


def _checksum(text: str) -> int:
    return zlib.crc32(os.fsencode(text))
