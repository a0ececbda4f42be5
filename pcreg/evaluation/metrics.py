"""Metrics of registrations, and figures from the records of a benchmark, averaged as in papers.

Inlier ratio (IR), feature-match recall (FMR), registration recall (RR), rotation and translation errors (RRE,
RTE). Motions are T_target_source (4, 4) float64. A pair without an estimate has errors NaN, passes no gate,
and counts in every denominator. Statistics of no values are NaN.

Keys of figures: IR and FMR of mutual matches, IR_one_way and FMR_one_way of nearest neighbours; RR by
information matrix (official 3DMatch), RR_rmse by true RMSE, RR_<m>m_<deg>deg by RTE and RRE;
RTE_<mask>_<statistic> and RRE_<mask>_<statistic> in metres and degrees, with the `masks` of the first gate;
seconds_<step> per pair; numbers of pairs: pairs, pairs_RR of the official recall, and of verdicts accepted,
accepted_right and refused_right, right by the protocol's own criterion. Ratios are fractions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.evaluation.protocol import Scoring
from pcreg.geometry.se3 import inverse

Figures = dict[str, float]
Row = dict[str, Any]  # one trial of one pair
PAIRS = ("pairs", "pairs_RR")
VERDICTS = ("accepted", "accepted_right", "refused_right")
COUNTS = PAIRS + VERDICTS
MASKS = ("joint", "separate", "all")


def fraction_below(distances: np.ndarray, limit: float) -> float:
    """Fraction of distances (P,) strictly below the limit, 0 if P = 0: the IR at an inlier distance."""
    return float((distances < limit).mean()) if len(distances) else 0.0


def information_rmse(T_estimate: np.ndarray, T_true: np.ndarray, information: np.ndarray) -> float:
    """Error in metres that the official recall of 3DMatch compares with 0.2 m, as Predator computes it.

    sqrt(xi^T I xi / I[0, 0]) with xi the translation and the vector part of the unit quaternion of
    T_true^-1 T_estimate, half the rotation, and I (6, 6) of gt.info. NaN if I counts no correspondences.
    """
    if not information[0, 0] > 0:
        return float("nan")
    error = inverse(T_true) @ T_estimate
    quaternion = Rotation.from_matrix(error[:3, :3]).as_quat(canonical=True)  # x, y, z, w >= 0
    xi = np.concatenate([error[:3, 3], quaternion[:3]])
    return float(np.sqrt(xi @ information @ xi / information[0, 0]))


def within(RTE: np.ndarray, RRE: np.ndarray, gate: Sequence[float]) -> np.ndarray:
    """Mask (N,) of pairs with RTE below gate[0] metres and RRE below gate[1] degrees."""
    return (np.asarray(RTE) < gate[0]) & (np.asarray(RRE) < gate[1])


def masks(RTE: np.ndarray, RRE: np.ndarray, gate: Sequence[float]) -> dict[str, tuple[np.ndarray, ...]]:
    """Masks (N,) of the pairs over which papers average RTE, and of those for RRE, by name.

    `joint`: both errors within the gate, as GeoTransformer; `separate`: the averaged error within its limit,
    as FCGF and Predator; `all`: every pair with an estimate, as DGR's running log.
    """
    both = within(RTE, RRE, gate)
    kept = (both, both), (gate[0] > RTE, gate[1] > RRE), (np.isfinite(RTE), np.isfinite(RRE))
    return dict(zip(MASKS, kept, strict=True))


def mean(values: Sequence[float] | np.ndarray) -> float:
    """Mean; NaN if there are no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def std(values: Sequence[float] | np.ndarray, ddof: int = 0) -> float:
    """Standard deviation, of the population or with ddof=1 of a sample; NaN for too few values."""
    return float(np.std(values, ddof=ddof)) if len(values) > ddof else float("nan")


STATISTICS = {"mean": np.mean, "std": np.std, "median": np.median}


def of_scenes(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Mean and population standard deviation of one value per scene, without scenes of value NaN."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return mean(values), std(values)


def rows(records: Sequence[Row], samples: int | None, seed: int) -> list[Row]:
    """Merge each record of a pair with its trial of `samples` and `seed`."""
    return [
        record | next(t for t in record["trials"] if (t["samples"], t["seed"]) == (samples, seed))
        for record in records
    ]


def column(scored: Sequence[Row], key: str) -> np.ndarray:
    """Values (P,) float64 of a key, with NaN, which fails every gate, for None."""
    return np.array([np.nan if row[key] is None else row[key] for row in scored], dtype=np.float64)


def succeeded(scored: Sequence[Row], protocol: Scoring) -> np.ndarray:
    """Mask (P,) of registered pairs by the criterion of the protocol; RMSE replaces missing information."""
    if protocol.recall == "gate":
        return within(column(scored, "RTE"), column(scored, "RRE"), protocol.gates[0])
    official = protocol.recall == "information" and all("information_rmse" in row for row in scored)
    return column(scored, "information_rmse" if official else "rmse") <= protocol.recall_rmse


def figures(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """Figures of these rows, pooled."""
    common = set(scored[0]).intersection(*scored)  # a data set may lack a key
    RTE, RRE = column(scored, "RTE"), column(scored, "RRE")
    result: Figures = {"pairs": len(scored)}
    if "information_rmse" in common:
        official = column(scored, "information_rmse")[~column(scored, "consecutive").astype(bool)]
        result |= {"pairs_RR": len(official), "RR": mean(official <= protocol.recall_rmse)}
    result["RR_rmse"] = mean(column(scored, "rmse") <= protocol.recall_rmse)
    result |= {gate_key(gate): mean(within(RTE, RRE, gate)) for gate in protocol.gates}
    if "registered" in common:
        accepted, right = column(scored, "registered").astype(bool), succeeded(scored, protocol)
        counted = accepted.sum(), (accepted & right).sum(), (~accepted & right).sum()
        result |= dict(zip(VERDICTS, map(int, counted), strict=True))
    for kind in ("", "_one_way"):
        if f"IR{kind}" in common:
            ratios = column(scored, f"IR{kind}")
            # Above, as in Predator's code; FCGF and GeoTransformer count equality, too.
            result |= {f"FMR{kind}": mean(ratios > protocol.tau2), f"IR{kind}": mean(ratios)}
    if protocol.gates:
        for mask, kept in masks(RTE, RRE, protocol.gates[0]).items():
            for name, values in zip(("RTE", "RRE"), (RTE[kept[0]], RRE[kept[1]]), strict=True):
                for each, function in STATISTICS.items():
                    result[f"{name}_{mask}_{each}"] = float(function(values)) if len(values) else np.nan
    if "describe_seconds" in common:
        result["seconds_describe"] = mean(column(scored, "describe_seconds"))
    for step in scored[0]["seconds"]:
        result[f"seconds_{step}"] = mean([row["seconds"][step] for row in scored])
    return result


def gate_key(gate: Sequence[float]) -> str:
    return f"RR_{gate[0]:g}m_{gate[1]:g}deg"


def by_scene(scored: Sequence[Row], protocol: Scoring) -> dict[str, Figures]:
    """Figures of every scene, by name."""
    scenes = sorted({row["scene"] for row in scored})
    return {scene: figures([r for r in scored if r["scene"] == scene], protocol) for scene in scenes}


def overall(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """Figures of all rows, averaged over scenes or pooled, as the protocol says."""
    return over_scenes(scored, protocol) if protocol.scene_mean else figures(scored, protocol)


def over_scenes(scored: Sequence[Row], protocol: Scoring) -> Figures:
    """Mean of the figures of scenes, which have equal weight whatever their number of pairs."""
    scenes = by_scene(scored, protocol).values()
    return {
        key: value if key in COUNTS else of_scenes([scene[key] for scene in scenes])[0]
        for key, value in figures(scored, protocol).items()
    }


def over_seeds(runs: Sequence[Figures]) -> tuple[Figures, Figures]:
    """Mean of every figure over runs with different seeds, and its sample standard deviation (NaN of one)."""
    means = {key: mean([run[key] for run in runs]) for key in runs[0]}
    spread = {key: std([run[key] for run in runs], ddof=1) for key in runs[0]}
    return means, spread
