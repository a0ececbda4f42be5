"""Draw the pictures of docs/concepts/.

python benchmarks/pictures.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from pages import RESULTS, load
from report import run

from pcreg.datasets.simulated.indoor import record
from pcreg.geometry.se3 import residuals, rotation_about
from pcreg.registration.registrar import Registrar

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "concepts"
BLUE, ORANGE, GREEN, RED, GREY = "#2f6db5", "#e08a1e", "#2a9d4a", "#c8372d", "#b8b8b8"
STEPS = (
    "one point\nper voxel",
    "descriptors\n(ResUNet)",
    "matches\n(mutual nearest)",
    "motion\n(RANSAC)",
    "refinement\n(ICP)",
    "evidence",
    "registered,\nor not",
)
MATCH_DISTANCE = 0.1  # metres, within which a match is drawn as right
DRAWN_MATCHES = 150


def main() -> None:
    pictures = {"pipeline": pipeline(), "cells": cells(), "matches": matches(), "overlap": overlap()}
    for name, figure in pictures.items():
        figure.savefig(PICTURES / f"{name}.png", dpi=110, bbox_inches="tight")


def pipeline() -> plt.Figure:
    """The steps from two clouds to an answer."""
    figure, axes = plt.subplots(figsize=(11, 1.3))
    axes.axis("off")
    axes.set(xlim=(-0.5, len(STEPS) - 0.5), ylim=(-0.5, 0.5))
    for n, step in enumerate(STEPS):
        color = ORANGE if n == len(STEPS) - 1 else BLUE
        box = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": color, "lw": 1.5}
        axes.text(n, 0, step, ha="center", va="center", fontsize=9, bbox=box)
        if n:
            axes.annotate("", (n - 0.42, 0), (n - 0.58, 0), arrowprops={"arrowstyle": "->", "color": "black"})
    return figure


def cells() -> plt.Figure:
    """The same points as a kernel on native points sees them, and as a voxel convolution does."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-2.4, 2.4, 24))
    points = np.stack([x, 0.5 * np.sin(1.6 * x) + rng.normal(0, 0.06, len(x))], 1)
    centre = points[np.abs(points).sum(1).argmin()]
    figure, (native, voxel) = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
    _grid(native, centre - 1.5, BLUE)
    radius = 1.5 * (4 / np.pi) ** 0.5
    near = np.linalg.norm(points - centre, axis=1) <= radius
    native.add_patch(plt.Circle(centre, radius, fill=False, color=ORANGE, lw=1.5))
    native.scatter(*points.T, c=np.where(near, BLUE, GREY), s=22, zorder=3)
    native.scatter(*centre, c=ORANGE, s=60, zorder=4)
    native.set_title("native points: cells and radius around an original point", fontsize=9)
    snapped = np.unique(np.floor(points), axis=0) + 0.5
    own = np.floor(centre) + 0.5
    _grid(voxel, own - 1.5, BLUE)
    seen = np.abs(snapped - own).max(1) < 1.5
    voxel.scatter(*points.T, c=GREY, s=10, zorder=2)
    voxel.scatter(*snapped.T, c=np.where(seen, BLUE, GREY), s=60, marker="s", zorder=3)
    voxel.scatter(*own, c=ORANGE, s=80, marker="s", zorder=4)
    voxel.set_title("voxels: points move to the middle of a fixed grid's cells", fontsize=9)
    for axes in (native, voxel):
        axes.set(xlim=(-2.6, 2.6), ylim=(-2, 2), aspect="equal", xticks=[], yticks=[])
    return figure


def _grid(axes: Axes, low: np.ndarray, color: str) -> None:
    """Three by three cells of width 1 from a corner (2,)."""
    for n in range(4):
        axes.plot([low[0] + n] * 2, [low[1], low[1] + 3], color=color, lw=0.8)
        axes.plot([low[0], low[0] + 3], [low[1] + n] * 2, color=color, lw=0.8)


def matches() -> plt.Figure:
    """The matches of two simulated fragments, and those that the motion found brings together."""
    recording = record(11, 0, "cpu")
    source, target = (recording.clouds[n].double().numpy() for n in (1, 3))
    truth, registrar = recording.motion(1, 3), Registrar()
    a, b = (registrar.prepare(cloud, viewpoint="sensor") for cloud in (source, target))
    scale = next(registrar.scales(a, b))
    one, other = a.at(scale), b.at(scale)
    rows = scale._match_features(one, other).rows
    from_local = a.frame.T_given_local, b.frame.T_given_local
    starts, ends = (
        cloud.points[rows[:, side]] @ T[:3, :3].T + T[:3, 3]
        for side, (cloud, T) in enumerate(zip((one, other), from_local, strict=True))
    )
    found = registrar.register(a, b)
    right = residuals(truth, starts, ends) < MATCH_DISTANCE
    kept = residuals(found.T_target_source, starts, ends) < MATCH_DISTANCE
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6))
    titles = (
        f"{len(rows)} mutual matches, {right.mean():.0%} of them right",
        f"the {kept.sum()} that the motion found brings together",
    )
    for ax, shown, title in zip(axes, (np.ones(len(rows), bool), kept), titles, strict=True):
        _side_by_side(ax, source, target, starts[shown], ends[shown], right[shown])
        ax.set_title(title, fontsize=9)
    return figure


def _side_by_side(
    axes: Axes,
    source: np.ndarray,
    target: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    right: np.ndarray,
) -> None:
    """Two clouds seen by their cameras, x right and y down, and lines between matches."""
    gap = np.array([np.ptp(source[:, 0]) * 0.5 + np.ptp(target[:, 0]) * 0.5 + 0.6, 0])
    tilt = rotation_about([1, 0, 0], 15)[:2]
    flat = [cloud @ tilt.T * [1, -1] for cloud in (source, target, starts, ends)]
    axes.scatter(*flat[0][::4].T, s=0.3, c=GREY)
    axes.scatter(*(flat[1][::4] + gap).T, s=0.3, c=GREY)
    step = max(1, len(starts) // DRAWN_MATCHES)
    lines = np.stack([flat[2], flat[3] + gap], 1)[::step]
    colors = np.where(right[::step], GREEN, RED)
    axes.add_collection(LineCollection(lines, colors=colors, linewidths=0.5, alpha=0.8))
    axes.set_aspect("equal")
    axes.axis("off")


def overlap() -> plt.Figure:
    """Recall and inlier ratio against the overlap, from docs/results/overlap.json."""
    rows = load(RESULTS / "overlap.json")["rows"]
    figure, axes = plt.subplots(figsize=(6, 3.2))
    places = np.arange(len(rows))
    for column, label, style in ((2, "nearest", "-"), (3, "attention", "--")):
        axes.plot(
            places, [float(row[column]) for row in rows], BLUE, ls=style, marker="o", label=f"RR, {label}"
        )
        ratios = [float(row[column + 2]) for row in rows]
        axes.plot(places, ratios, ORANGE, ls=style, marker="s", label=f"inlier ratio, {label}")
    axes.set(
        xticks=places, xticklabels=[row[0].replace(" to ", "-") for row in rows], ylim=(0, 102), ylabel="%"
    )
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlabel("overlap of a pair of 3DMatch or 3DLoMatch")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    run(main)
