"""Run a descriptor over the pairs of a data set and record every figure of every pair.

Per pair: draw points, match their features, estimate the motion by RANSAC, hold all of it against the
truth. Nothing is averaged here; `pcreg.tables` does that, from the records.
"""

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from pcreg import metrics
from pcreg.descriptors import Descriptor
from pcreg.errors import InputError
from pcreg.geometry import rotation_error, translation_error
from pcreg.matching import agreeing, one_way
from pcreg.pair import Pair, PairDataset
from pcreg.protocol import Protocol
from pcreg.ransac import ransac
from pcreg.records import Records

CLOUDS_IN_MEMORY = 128  # a scene of 3DMatch has up to 66, and its pairs come together


@dataclass(frozen=True)
class Keypoints:
    """The points of a cloud that take part in matching."""

    points: np.ndarray  # (M, 3) float64
    features: np.ndarray  # (M, C) float32
    seconds: float  # to describe the cloud


def run(
    dataset: PairDataset, descriptor: Descriptor, protocol: Protocol, records: Records, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Score all pairs of the data set into `records`; returns one record per pair, in their order.

    Pairs recorded before are not done again. Raises InputError if there are no pairs, and if
    descriptor and protocol differ in voxel size.
    """
    if not dataset.pairs:
        raise InputError("the data set holds no pairs; check data.* and limit")
    if descriptor.voxel != protocol.voxel:
        raise InputError(
            f"the descriptor works at voxel {descriptor.voxel:g} m and the protocol asks for "
            f"{protocol.voxel:g} m; set protocol.voxel={descriptor.voxel:g}"
        )

    @lru_cache(maxsize=CLOUDS_IN_MEMORY)
    def keypoints(name: str) -> Keypoints:
        return draw(descriptor, dataset.cloud(name), protocol.samples, [seed, zlib.crc32(name.encode())])

    todo = [pair for pair in dataset.pairs if pair.name not in records.by_pair]
    for pair in track(todo, f"{protocol.name}, {descriptor.name}", console=Console(file=sys.stderr)):
        records.add(score(pair, keypoints, protocol, seed))
    return [records.by_pair[pair.name] for pair in dataset.pairs]


def draw(descriptor: Descriptor, points: np.ndarray, samples: int | None, seed: list[int]) -> Keypoints:
    """Describe the cloud (N, 3) and draw `samples` of its points, without replacement; None takes all."""
    start = perf_counter()
    description = descriptor.describe(points)
    seconds = perf_counter() - start
    if samples is None or samples >= len(description.points):
        return Keypoints(description.points, description.features, seconds)
    rows = np.random.default_rng(seed).choice(len(description.points), samples, replace=False)
    return Keypoints(description.points[rows], description.features[rows], seconds)


def score(pair: Pair, keypoints: Callable[[str], Keypoints], protocol: Protocol, seed: int) -> dict[str, Any]:
    """Register one pair and compare with its truth. Errors are None if no motion was found."""
    source, target = keypoints(pair.source), keypoints(pair.target)
    start = perf_counter()
    there = one_way(source.features, target.features)
    mutual = agreeing(there, one_way(target.features, source.features))
    matched = perf_counter()
    estimate = ransac(
        source.points[mutual[:, 0]],
        target.points[mutual[:, 1]],
        distance=protocol.distance,
        iterations=protocol.iterations,
        confidence=protocol.confidence,
        seed=seed,
        n=protocol.n,
        edge_length=protocol.edge_length,
    )
    estimated = perf_counter()

    def inlier_ratio(pairs: np.ndarray) -> float:
        p, q = source.points[pairs[:, 0]], target.points[pairs[:, 1]]
        return metrics.inlier_ratio(p, q, pair.T_target_source, protocol.tau1)

    T, T_true, found = estimate.T_target_source, pair.T_target_source, estimate.inliers > 0
    record = {
        "pair": pair.name,
        "source": pair.source,
        "target": pair.target,
        "scene": pair.scene,
        "overlap": pair.overlap,
        "consecutive": pair.consecutive,
        "points": [len(source.points), len(target.points)],
        "matches": len(mutual),
        "IR": inlier_ratio(mutual),
        "IR_one_way": inlier_ratio(there),
        "inliers": estimate.inliers,  # of the estimated motion, within the RANSAC distance
        "inlier_ratio": estimate.inlier_ratio,
        "RTE": translation_error(T, T_true) if found else None,
        "RRE": rotation_error(T, T_true) if found else None,
        "rmse": metrics.rmse(T, T_true, source.points) if found else None,
        "T_target_source": T.tolist() if found else None,
        "seconds": {
            "describe": source.seconds + target.seconds,
            "match": matched - start,
            "ransac": estimated - matched,
        },
    }
    if pair.information is not None:
        error = metrics.information_rmse(T, T_true, pair.information) if found else np.nan
        record["information_rmse"] = None if np.isnan(error) else error
    return record


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    import open3d

    return {
        "pcreg": version("pcreg"),
        "torch": torch.__version__,
        "open3d": open3d.__version__,
        "numpy": np.__version__,
    }
