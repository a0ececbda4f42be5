"""Metrics of registrations, and the averages of papers.

Inlier ratio (IR), feature-match recall (FMR), registration recall (RR), rotation and translation errors (RRE,
RTE). Motions are T_target_source (4, 4) float64. The errors of a registration that was not found are NaN:
they pass no gate and count in every denominator. Statistics of nothing are NaN.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.geometry.se3 import inverse, residuals, transform


def inlier_ratio(source: np.ndarray, target: np.ndarray, T_true: np.ndarray, tau1: float) -> float:
    """IR: fraction of correspondences (P, 3), (P, 3) that T_true brings closer than tau1; 0 if P = 0."""
    return fraction_below(residuals(T_true, source, target), tau1)


def fraction_below(distances: np.ndarray, limit: float) -> float:
    """The fraction of distances (P,) strictly below the limit; 0 if P = 0."""
    return float((distances < limit).mean()) if len(distances) else 0.0


def feature_matched(inlier_ratios: np.ndarray, tau2: float) -> np.ndarray:
    """Pairs (N,) with an inlier ratio above tau2, as in Predator; FMR is their fraction.

    FCGF and GeoTransformer also admit equality.
    """
    return np.asarray(inlier_ratios) > tau2


def information_rmse(T_estimate: np.ndarray, T_true: np.ndarray, information: np.ndarray) -> float:
    """The error in metres that the official recall of 3DMatch compares with 0.2 m.

    sqrt(xi^T I xi / I[0, 0]) with xi the translation and the vector part of the unit quaternion of
    T_true^-1 T_estimate, and I (6, 6) of gt.info, as in the evaluation of Predator. That vector is
    half the rotation, so the error of rotations is about half the displacement of the points. NaN if
    I counts no correspondences.
    """
    if not information[0, 0] > 0:
        return float("nan")
    error = inverse(T_true) @ T_estimate
    quaternion = Rotation.from_matrix(error[:3, :3]).as_quat(canonical=True)  # x, y, z, w >= 0
    xi = np.concatenate([error[:3, 3], quaternion[:3]])
    return float(np.sqrt(xi @ information @ xi / information[0, 0]))


def rmse(T_estimate: np.ndarray, T_true: np.ndarray, points: np.ndarray) -> float:
    """Root of the mean squared distance, metres, between source points (N, 3) moved by either motion."""
    displacement = transform(T_estimate, points) - transform(T_true, points)
    return float(np.sqrt((displacement**2).sum(1).mean()))


def within(RTE: np.ndarray, RRE: np.ndarray, gate: Sequence[float]) -> np.ndarray:
    """Pairs (N,) with RTE below gate[0] metres and RRE below gate[1] degrees: the joint mask."""
    return (np.asarray(RTE) < gate[0]) & (np.asarray(RRE) < gate[1])


def masks(RTE: np.ndarray, RRE: np.ndarray, gate: Sequence[float]) -> dict[str, tuple]:
    """The pairs over which papers average RTE and RRE: a mask (N,) for either, by name.

    `joint`: both errors within the gate, as GeoTransformer; `separate`: each error within its own half,
    as FCGF and Predator; `all`: every pair with an estimate, as DGR's running log.
    """
    RTE, RRE = np.asarray(RTE), np.asarray(RRE)
    both = within(RTE, RRE, gate)
    return {
        "joint": (both, both),
        "separate": (gate[0] > RTE, gate[1] > RRE),
        "all": (np.isfinite(RTE), np.isfinite(RRE)),
    }


def mean(values: Sequence[float] | np.ndarray) -> float:
    """The plain mean."""
    return float(np.mean(values)) if len(values) else float("nan")


def std(values: Sequence[float] | np.ndarray, ddof: int = 0) -> float:
    """The standard deviation, of the population or with ddof=1 of a sample."""
    return float(np.std(values, ddof=ddof)) if len(values) > ddof else float("nan")


def median(values: Sequence[float] | np.ndarray) -> float:
    """The median."""
    return float(np.median(values)) if len(values) else float("nan")


def over_scenes(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Mean and population standard deviation of one value per scene, without scenes of value NaN.

    As in tables of 3DMatch: a scene of few pairs weighs as much as one of many.
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return mean(values), std(values)
