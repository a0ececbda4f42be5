"""A probability fitted to outcomes, and how well it keeps what it says."""

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from pcreg.runtime.files import replacing

BINS = 10
SMOOTH = 1e-3  # of the squared weights of normalised columns


def logistic(X: np.ndarray, right: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights (F,), none negative, and bias of the logistic model of right (N,) bool by traits X (N, F).

    Row n counts `counts[n]` times.
    """
    mean, spread = X.mean(0), X.std(0) + 1e-9
    share = counts / counts.mean()
    Z = np.c_[(X - mean) / spread, np.ones(len(X))]

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = Z @ w
        excess = share * (1 / (1 + np.exp(-log_odds)) - right)
        smooth = SMOOTH * np.r_[w[:-1], 0]
        value = (share * np.logaddexp(0, log_odds * np.where(right, -1, 1))).mean() + (smooth * w).sum() / 2
        return value, Z.T @ excess / len(Z) + smooth

    bounds = [(0, None)] * X.shape[1] + [(None, None)]
    w = minimize(loss, np.zeros(Z.shape[1]), jac=True, bounds=bounds).x
    weights = w[:-1] / spread
    return weights, float(w[-1] - weights @ mean)


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """The mean difference between confidence and frequency over ten bins, weighted by their numbers."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    excess = np.bincount(bins, confidence - right, minlength=BINS)
    return float(np.abs(excess).sum() / counts.sum())


def draw(confidence: np.ndarray, right: np.ndarray, threshold: float, path: Path) -> None:
    """Right answers against confidence, in ten bins, over a histogram of the confidences."""
    from matplotlib.figure import Figure

    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    used = np.unique(bins)
    figure = Figure(figsize=(5, 4.5), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
    frequency = np.array([right[bins == each].mean() for each in used])
    number = np.array([(bins == each).sum() for each in used])
    error = 1.96 * np.sqrt(np.maximum(frequency * (1 - frequency), 0.25 / number) / number)
    mean = [confidence[bins == each].mean() for each in used]
    upper.errorbar(mean, frequency, error, marker="o", color="#1f7eb0", capsize=2)
    upper.set(ylabel="share of right answers", ylim=(-0.05, 1.05))
    upper.set_title(f"{len(right)} pairs, calibration error {calibration_error(confidence, right):.3f}")
    lower.hist(
        [confidence[right], confidence[~right]],
        np.linspace(0, 1, BINS + 1),
        stacked=True,
        label=["right", "wrong"],
        color=["#1f7eb0", "#f59234"],
    )
    lower.axvline(threshold, color="black", linewidth=1, linestyle=":")
    lower.set(xlabel="confidence", ylabel="pairs", yscale="log")
    lower.legend(frameon=False)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
