"""One self-contained HTML file of a benchmark: tables, charts, and pictures of the worst pairs."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from pcreg.evaluation import metrics
from pcreg.evaluation.protocol import Protocol, Setup, caption
from pcreg.evaluation.tables import Records, per_scene, tables
from pcreg.evaluation.trial import TAU_FACTORS
from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.pairs import PairDataset
from pcreg.viz.files import write_page
from pcreg.viz.overview import SOURCE, TARGET, as_image
from pcreg.viz.render import render

PICTURES = 20
SIZE = (480, 360)
BINS = 10  # of overlap
STYLE = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "pcreg"}
STYLE |= {"axes.grid": True, "grid.alpha": 0.3}


def report(records: Records, setup: Setup, dataset: PairDataset, path: str | Path) -> None:
    """Write the report to `path`, atomically; `dataset` has the clouds of the worst pairs."""
    write_page(
        path,
        "pcreg.evaluation",
        "report.html",
        records=records,
        setup=setup,
        caption=caption(records, setup),
        tables=tables(records, setup),
        scenes=[per_scene(records, setup, samples) for samples in setup.protocol.samples],
        charts=charts(records, setup),
        samples=setup.protocol.samples[0],
        failures=failures(records, setup, dataset, PICTURES),
    )


def failures(records: Records, setup: Setup, dataset: PairDataset, count: int) -> list[dict[str, Any]]:
    """Rows, pictures (JPEG or None) and captions of the `count` worst pairs by RMSE, no estimate first."""
    rows = metrics.rows(records, setup.protocol.samples[0], setup.seeds[0])
    rows.sort(key=lambda row: np.inf if row["rmse"] is None else row["rmse"], reverse=True)
    return [
        {"row": row, **_pictures(row, setup, dataset), "words": _figures(row, setup)} for row in rows[:count]
    ]


def _pictures(row: dict[str, Any], setup: Setup, dataset: PairDataset) -> dict[str, bytes | None]:
    """Pictures by the estimated and the true motion; without a voxel size all points are drawn."""
    source, target = (dataset.cloud(row[side]) for side in ("source", "target"))
    if voxel := row.get("voxel") or setup.protocol.voxel:
        source, target = source[voxel_downsample(source, voxel)], target[voxel_downsample(target, voxel)]
    middle = target.sum(0) / max(len(target), 1)  # `render` computes in float32: 0.5 m in map coordinates
    target = target - middle
    _, _, camera = np.linalg.svd(target.T @ target)  # looks at the widest side
    camera[2] = np.cross(camera[0], camera[1])

    def picture(T: list[list[float]] | None) -> bytes | None:
        if T is None:
            return None
        clouds, jpeg = [transform(np.array(T), source) - middle, target], io.BytesIO()
        as_image(render(clouds, [SOURCE, TARGET], camera, size=SIZE, splat=3)).save(jpeg, "jpeg", quality=85)
        return jpeg.getvalue()

    return {"estimated": picture(row["T_target_source"]), "true": picture(row["truth"])}


def _figures(row: dict[str, Any], setup: Setup) -> str:
    """Caption of the pictures of a pair."""
    errors = "no estimate"
    if row["rmse"] is not None:
        errors = f"RTE {row['RTE']:.3f} m, RRE {row['RRE']:.2f} deg, RMSE {row['rmse']:.3f} m"
    verdict = "registered" if metrics.succeeded([row], setup.protocol)[0] else "not registered"
    if "IR" in row:
        found = f"IR {100 * row['IR']:.1f} %, {row['inliers']} inliers of {row['matches']} matches"
    else:
        accepted = "accepted" if row["registered"] else "refused"
        found = f"{accepted} with confidence {row['confidence']:.2f}: {row['reason']}"
    overlap = "unknown" if row["overlap_measured"] is None else f"{row['overlap_measured']:.2f}"
    return f"{errors}, {verdict}; overlap {overlap}, {found}"


def charts(records: Records, setup: Setup) -> dict[str, bytes]:
    """All charts by title, as SVG: recall against thresholds, success against overlap."""
    with rc_context(STYLE):
        return {
            "Recall against thresholds": _svg(_recall_curves(records, setup)),
            "Success against overlap": _svg(_overlap(records, setup)),
        }


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def recall_curve(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Fraction (K,) of values (P,) below each threshold (K,); NaN is below none."""
    return (np.asarray(values)[:, None] < thresholds).mean(0)


def success_by_overlap(overlap: np.ndarray, success: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Success rate (BINS,), NaN where there is no pair, and pairs (BINS,) in equal bins of overlap 0..1."""
    which = np.clip((np.asarray(overlap) * BINS).astype(int), 0, BINS - 1)
    pairs = np.bincount(which, minlength=BINS)
    passed = np.bincount(which, weights=np.asarray(success, dtype=float), minlength=BINS)
    return np.divide(passed, pairs, out=np.full(BINS, np.nan), where=pairs > 0), pairs


def _recall_curves(records: Records, setup: Setup) -> Figure:
    """Recall by RRE and RTE, for descriptors also FMR by inlier distance and ratio; a line per N."""
    protocol = setup.protocol
    of_matches = isinstance(protocol, Protocol)
    RRE, tau2 = np.linspace(0, 15, 151), np.linspace(0, 0.3, 151)
    RTE = np.linspace(0, 2.0 if protocol.gates else 10 * protocol.tau1, 151)
    labels = [("RRE below, deg", "pairs, %"), ("RTE below, m", "pairs, %")]
    if of_matches:
        labels += [
            ("inlier distance τ1, m", f"pairs with IR > {protocol.tau2:g}, %"),
            ("inlier ratio τ2", f"pairs with IR > τ2 at {protocol.tau1:g} m, %"),
        ]
    figure = Figure(figsize=(9.2, 6.2 if of_matches else 3.1), layout="constrained")
    axes = figure.subplots(len(labels) // 2, 2).ravel()
    for samples in protocol.samples:
        runs = [metrics.rows(records, samples, seed) for seed in setup.seeds]
        curves = [
            (RRE, [recall_curve(metrics.column(run, "RRE"), RRE) for run in runs]),
            (RTE, [recall_curve(metrics.column(run, "RTE"), RTE) for run in runs]),
        ]
        if of_matches:
            by_tau1 = [(np.array([row["IR_curve"] for row in run]) > protocol.tau2).mean(0) for run in runs]
            by_tau2 = [(metrics.column(run, "IR")[:, None] > tau2).mean(0) for run in runs]
            curves += [(TAU_FACTORS * protocol.tau1, by_tau1), (tau2, by_tau2)]
        for axis, (x, found) in zip(axes, curves, strict=True):
            label = "all" if samples is None else str(samples)
            axis.plot(x, 100 * np.mean(found, axis=0), label=label, linewidth=1.3)
    for axis, (x, y) in zip(axes, labels, strict=True):
        axis.set(xlabel=x, ylabel=y, ylim=(0, 101))
    axes[0].legend(title="N", fontsize=8, loc="lower right")
    return figure


def _overlap(records: Records, setup: Setup) -> Figure:
    """The success rate per tenth of overlap, with the number of pairs."""
    samples = setup.protocol.samples[0]
    overlap = metrics.column(records, "overlap_measured")
    runs = [metrics.succeeded(metrics.rows(records, samples, s), setup.protocol) for s in setup.seeds]
    usable = np.isfinite(overlap)
    rate, pairs = success_by_overlap(overlap[usable], np.mean(runs, axis=0)[usable])
    middle, height = (np.arange(BINS) + 0.5) / BINS, 100 * np.nan_to_num(rate)
    figure = Figure(figsize=(6.6, 3.1), layout="constrained")
    axis = figure.subplots()
    axis.bar(middle, height, width=0.9 / BINS, color=TARGET)
    for x, y, count in zip(middle, height, pairs, strict=True):
        if count:
            axis.annotate(str(count), (x, y), ha="center", va="bottom", fontsize=8)
    axis.set(xlabel="overlap of the source, measured; above: pairs", ylabel="registered, %", ylim=(0, 108))
    return figure
