"""Figures from the records of a benchmark.

Keys of figures: IR and FMR of mutual matches, IR_one_way and FMR_one_way of nearest neighbours; RR by
information matrix (official 3DMatch), RR_rmse by true RMSE, RR_<m>m_<deg>deg by RTE and RRE;
RTE_<mask>_<statistic> and RRE_<mask>_<statistic> in metres and degrees, with the masks of
pcreg.evaluation.metrics by the first gate; seconds_<step> per pair; numbers of pairs: pairs, pairs_RR of the
official recall, and of answers with a verdict accepted, accepted_right and refused_right, right by the
protocol's own criterion. Ratios are fractions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pcreg.evaluation import metrics
from pcreg.evaluation.protocol import Scoring

Figures = dict[str, float]
Row = dict[str, Any]  # one trial of one pair
PAIRS = ("pairs", "pairs_RR")
VERDICTS = ("accepted", "accepted_right", "refused_right")
COUNTS = PAIRS + VERDICTS
MASKS = ("joint", "separate", "all")
STATISTICS = {"mean": metrics.mean, "std": metrics.std, "median": metrics.median}


def rows(
    records: Sequence[dict[str, Any]], samples: int | None, seed: int, compat: bool = False
) -> list[Row]:
    """Every pair with its trial of `samples` and `seed`; `compat` takes errors by FCGF's ground truth."""
    found = []
    for record in records:
        trial = next(t for t in record["trials"] if (t["samples"], t["seed"]) == (samples, seed))
        found.append(record | trial | (trial["compat"] if compat else {}))
    return found


def has(scored: Sequence[Row], key: str) -> bool:
    """True if every row has this key; a data set may lack it."""
    return all(key in row for row in scored)


def column(scored: Sequence[Row], key: str) -> np.ndarray:
    """The values (P,) of a key, NaN where it is None: it fails every gate."""
    return np.array([np.nan if row[key] is None else row[key] for row in scored], dtype=np.float64)


def succeeded(scored: Sequence[Row], protocol: Scoring) -> np.ndarray:
    """The pairs (P,) that count as registered, by the protocol's own criterion if the data allow it."""
    if protocol.recall == "gate":
        return metrics.within(column(scored, "RTE"), column(scored, "RRE"), protocol.gates[0])
    official = protocol.recall == "information" and has(scored, "information_rmse")
    return column(scored, "information_rmse" if official else "rmse") <= protocol.recall_rmse


def figures(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """The figures of these rows, pooled."""
    result: Figures = {"pairs": len(scored)}
    if has(scored, "information_rmse"):
        official = column(scored, "information_rmse")[~column(scored, "consecutive").astype(bool)]
        result["pairs_RR"] = len(official)
        result["RR"] = metrics.mean(official <= protocol.recall_rmse)
    result["RR_rmse"] = metrics.mean(column(scored, "rmse") <= protocol.recall_rmse)
    for gate in protocol.gates:
        passed = metrics.within(column(scored, "RTE"), column(scored, "RRE"), gate)
        result[gate_key(gate)] = metrics.mean(passed)
    if has(scored, "registered"):
        accepted, right = column(scored, "registered").astype(bool), succeeded(scored, protocol)
        counted = accepted.sum(), (accepted & right).sum(), (~accepted & right).sum()
        result |= dict(zip(VERDICTS, map(int, counted), strict=True))
    for kind in ("", "_one_way"):
        if has(scored, f"IR{kind}"):
            ratios = column(scored, f"IR{kind}")
            result[f"FMR{kind}"] = metrics.mean(metrics.feature_matched(ratios, protocol.tau2))
            result[f"IR{kind}"] = metrics.mean(ratios)
    if protocol.gates:
        result |= _errors(scored, protocol.gates[0])
    if has(scored, "describe_seconds"):
        result["seconds_describe"] = metrics.mean(column(scored, "describe_seconds"))
    for step in scored[0]["seconds"]:
        result[f"seconds_{step}"] = metrics.mean([row["seconds"][step] for row in scored])
    return result


def gate_key(gate: Sequence[float]) -> str:
    return f"RR_{gate[0]:g}m_{gate[1]:g}deg"


def _errors(scored: Sequence[Row], gate: Sequence[float]) -> Figures:
    RTE, RRE = column(scored, "RTE"), column(scored, "RRE")
    return {
        f"{name}_{mask}_{statistic}": function(values[kept])
        for mask, keeps in metrics.masks(RTE, RRE, gate).items()
        for name, values, kept in zip(("RTE", "RRE"), (RTE, RRE), keeps, strict=True)
        for statistic, function in STATISTICS.items()
    }


def by_scene(scored: Sequence[Row], protocol: Scoring) -> dict[str, Figures]:
    """The figures of every scene, by name."""
    scenes = sorted({row["scene"] for row in scored})
    return {scene: figures([r for r in scored if r["scene"] == scene], protocol) for scene in scenes}


def overall(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """The figures of all rows, averaged over scenes or pooled, as the protocol says."""
    return over_scenes(scored, protocol) if protocol.scene_mean else figures(scored, protocol)


def over_scenes(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """The plain mean of the scenes' figures, a scene of few pairs weighing as much as one of many."""
    scenes = by_scene(scored, protocol).values()
    return {
        key: value if key in COUNTS else metrics.over_scenes([scene[key] for scene in scenes])[0]
        for key, value in figures(scored, protocol).items()
    }


def over_seeds(runs: Sequence[Figures]) -> tuple[Figures, Figures]:
    """Mean of every figure over runs with different seeds, and its sample standard deviation (NaN of one)."""
    means = {key: metrics.mean([run[key] for run in runs]) for key in runs[0]}
    spread = {key: metrics.std([run[key] for run in runs], ddof=1) for key in runs[0]}
    return means, spread
