"""Charts of a benchmark's records, as SVG: recall against thresholds, errors, success against overlap."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcreg.evaluation import aggregate
from pcreg.evaluation.caption import Setup
from pcreg.evaluation.trial import TAU_FACTORS

BINS = 10  # of overlap
PASSED, FAILED = "#1f7eb0", "#f59234"  # the blue and orange of the pictures
STYLE = {
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "pcreg",
    "axes.grid": True,
    "grid.alpha": 0.3,
}

Records = Sequence[dict[str, Any]]


def charts(records: Records, setup: Setup) -> dict[str, bytes]:
    """All charts by title."""
    curves = 4 if _matched_pairs(records) else 2
    return {
        "Recall against thresholds": _drawn(curves, lambda axes: _recall_curves(axes, records, setup)),
        "Errors": _drawn(3, lambda axes: _histograms(axes, records, setup)),
        "Success against overlap": _drawn(1, lambda axes: _overlap(axes[0], records, setup)),
    }


def _matched_pairs(records: Records) -> bool:
    """Whether there are inlier ratios."""
    return all("IR" in trial for record in records for trial in record["trials"])


def recall_curve(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The fraction of values (P,) below each threshold (K,): (K,). NaN is below none."""
    return (np.asarray(values)[:, None] < thresholds).mean(0)


def success_by_overlap(overlap: np.ndarray, success: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Success rate (BINS,), NaN where there is no pair, and pairs (BINS,) in equal bins of overlap 0..1."""
    which = np.clip((np.asarray(overlap) * BINS).astype(int), 0, BINS - 1)
    pairs = np.bincount(which, minlength=BINS)
    passed = np.bincount(which, weights=np.asarray(success, dtype=float), minlength=BINS)
    return np.divide(passed, pairs, out=np.full(BINS, np.nan), where=pairs > 0), pairs


def _drawn(count: int, draw: Any) -> bytes:
    """The SVG of `count` charts, four in two rows, fewer side by side."""
    from matplotlib import rc_context

    columns = 2 if count == 4 else count
    rows = -(-count // columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(4.6 * columns + (count == 1) * 2, 3.1 * rows), layout="constrained")
        axes = np.ravel(figure.subplots(rows, columns))
        draw(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _recall_curves(axes: Sequence[Axes], records: Records, setup: Setup) -> None:
    """Recall by RRE and RTE; FMR, if there are matches, by inlier distance and by inlier ratio.

    A line per number of samples.
    """
    protocol = setup.protocol
    RRE = np.linspace(0, 15, 151)
    RTE = np.linspace(0, 2.0 if protocol.gates else 10 * protocol.tau1, 151)
    matched = _matched_pairs(records)
    for samples in protocol.samples:
        label = "all" if samples is None else str(samples)
        runs = [aggregate.rows(records, samples, seed) for seed in setup.seeds]
        found = [
            (RRE, [recall_curve(aggregate.column(run, "RRE"), RRE) for run in runs]),
            (RTE, [recall_curve(aggregate.column(run, "RTE"), RTE) for run in runs]),
        ]
        if matched:
            tau1, tau2 = TAU_FACTORS * protocol.tau1, np.linspace(0, 0.3, 151)
            found += [
                (tau1, [_matched([row["IR_curve"] for row in run], protocol.tau2) for run in runs]),
                (tau2, [_matched(aggregate.column(run, "IR")[:, None], tau2) for run in runs]),
            ]
        for axis, (x, curves) in zip(axes, found, strict=True):
            axis.plot(x, 100 * np.mean(curves, axis=0), label=label, linewidth=1.3)
    words = [("RRE below, deg", "pairs, %"), ("RTE below, m", "pairs, %")]
    if matched:
        words += [
            ("inlier distance τ1, m", f"pairs with IR > {protocol.tau2:g}, %"),
            ("inlier ratio τ2", f"pairs with IR > τ2 at {protocol.tau1:g} m, %"),
        ]
    for axis, (x, y) in zip(axes, words, strict=True):
        axis.set(xlabel=x, ylabel=y, ylim=(0, 101))
    axes[0].legend(title="N", fontsize=8, loc="lower right")


def _matched(ratios: Any, tau2: Any) -> np.ndarray:
    """FMR of inlier ratios (P, K) against tau2, a number or (K,)."""
    return (np.asarray(ratios) > tau2).mean(0)


def _histograms(axes: Sequence[Axes], records: Records, setup: Setup) -> None:
    """RTE, RRE and RMSE of all pairs at the first N, on a logarithmic axis, by success."""
    rows = [r for seed in setup.seeds for r in aggregate.rows(records, setup.protocol.samples[0], seed)]
    passed = aggregate.succeeded(rows, setup.protocol)
    names = (("RTE", "RTE, m"), ("RRE", "RRE, deg"), ("rmse", "RMSE, m"))
    for axis, (key, label) in zip(axes, names, strict=False):
        values = np.maximum(aggregate.column(rows, key), 1e-3)  # the axis is logarithmic
        known = np.isfinite(values)
        if known.any():
            low, high = np.log10(values[known].min()), np.log10(values[known].max())
            bins = np.logspace(low - 0.05, high + 0.05, 41)
            stacked = [values[known & passed], values[known & ~passed]]
            axis.hist(stacked, bins, stacked=True, color=[PASSED, FAILED], label=["registered", "not"])
            axis.set_xscale("log")
        missing = int((~known).sum())
        axis.set(xlabel=label + (f" ({missing} without estimate)" if missing else ""), ylabel="pairs x seeds")
    axes[0].legend(fontsize=8)


def _overlap(axis: Axes, records: Records, setup: Setup) -> None:
    """The success rate per tenth of overlap, with the number of pairs."""
    samples = setup.protocol.samples[0]
    overlap = aggregate.column(records, "overlap_measured")
    runs = [aggregate.succeeded(aggregate.rows(records, samples, s), setup.protocol) for s in setup.seeds]
    known = np.isfinite(overlap)  # where a pair could be prepared at all
    rate, pairs = success_by_overlap(overlap[known], np.mean(runs, axis=0)[known])
    middle = (np.arange(BINS) + 0.5) / BINS
    axis.bar(middle, 100 * np.nan_to_num(rate), width=0.9 / BINS, color=PASSED)
    for x, y, count in zip(middle, 100 * np.nan_to_num(rate), pairs, strict=True):
        if count:
            axis.annotate(str(count), (x, y), ha="center", va="bottom", fontsize=8)
    axis.set(xlabel="overlap of the source, measured; above: pairs", ylabel="registered, %", ylim=(0, 108))
