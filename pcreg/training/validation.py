"""Feature match recall during training, and a comparison of descriptors after it."""

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import numpy as np

from pcreg.evaluation import runner
from pcreg.evaluation.estimators import NativeRansac
from pcreg.evaluation.metrics import fraction_below, gate_key, overall, rows
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description, Descriptor
from pcreg.features.cache import FeatureCache
from pcreg.geometry.se3 import residuals
from pcreg.io.pairs import PairDataset, points_of
from pcreg.registration.matching.nearest import match_all
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import EVALUATING, Records, code_fingerprint

CLOUDS_KEPT = 64  # descriptions in memory at a time


def check_pairs(dataset: PairDataset) -> None:
    """Raise InputError for a validation set without pairs."""
    if not dataset.pairs:
        raise InputError(
            f"validation: {dataset.name} has no pairs; check the settings under validation "
            "(its root, scenes, overlap or distance), or name another data set"
        )


def feature_match_recall(
    descriptor: Descriptor, dataset: PairDataset, n_points: int, tau: float | None, minimum: float
) -> dict[str, float]:
    """Match random points one way, source to target, and count right matches.

    A match is an inlier if it is less than `tau` metres off, by default two voxels. Returns `inlier_ratio`,
    the mean over pairs, and `feature_match_recall`, the fraction with an inlier ratio above `minimum`.
    """

    @lru_cache(maxsize=CLOUDS_KEPT)
    def describe(name: str) -> Description:
        described = descriptor.describe(points_of(dataset, name)).on("cpu")
        rng = np.random.default_rng([0, len(described.points)])
        kept = rng.permutation(len(described.points))[:n_points]
        return described.of_rows(kept)

    ratios = []
    for pair in dataset.pairs:
        a, b = describe(pair.source), describe(pair.target)
        matches = match_all(a.features, b.features).one_way
        off = residuals(pair.T_target_source, a.points[matches[:, 0]], b.points[matches[:, 1]])
        ratios.append(fraction_below(off, tau or 2 * descriptor.voxel))
    recall = float((np.array(ratios) > minimum).mean())
    return {"feature_match_recall": recall, "inlier_ratio": float(np.mean(ratios))}


def compare(
    before: Descriptor, after: Descriptor, dataset: PairDataset, protocol: Protocol, folder: Path, seed: int
) -> str:
    """Table in percent of ratios and recalls by two descriptors, and their change.

    Records go to `folder`, a file per descriptor, so that nothing is measured twice.
    """
    names = {"inlier ratio, mutual matches": "IR", "feature match recall": "FMR"}
    for metres, degrees in protocol.gates:
        names[f"registration recall, {metres:g} m and {degrees:g} deg"] = gate_key((metres, degrees))
    figures, remedy = [], f"delete the folder {folder} and run the same command again"
    measured = {"code": code_fingerprint(*EVALUATING), "protocol": asdict(protocol), "seed": seed}
    measured["scans"] = getattr(dataset, "fingerprint", "")  # of a folder whose files may change
    for descriptor in (before, after):
        identity = {"fingerprint": descriptor.fingerprint, "voxel": descriptor.voxel}
        name = "-".join(descriptor.fingerprint.replace(",", "").split())
        records = Records(folder / f"{name}.jsonl", measured | identity, remedy)
        features = FeatureCache(folder / "features", descriptor, identity)
        scored = runner.run(dataset, descriptor, NativeRansac(), protocol, records, features, seeds=[seed])
        figures.append(overall(rows(scored, protocol.samples[0], seed), protocol))

    width = max(map(len, names))
    lines = [f"{f'{len(dataset.pairs)} held-out pairs, %':{width}}  before   after  change"]
    for name, key in names.items():
        old, new = (100 * each[key] for each in figures)
        change = round(new - old, 1) + 0.0  # no -0.0
        lines.append(f"{name:{width}}  {old:6.1f}  {new:6.1f}  {change:+6.1f}")
    return "\n".join(lines)
