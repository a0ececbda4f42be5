"""How procedural LiDAR scans compare with real ones: one figure of their statistics and of some scans.

    python -m benchmarks.synthetic_outdoor ROOT --wheels 8 --hand 91 --out docs/synthetic_outdoor.png

ROOT is laid out as KITTI odometry. `--wheels` names a drive with an HDL-64E, `--hand` a walk with a LiDAR of
45 degrees up and down; each is compared with recordings of the like sensor in the like places.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from pcreg.datasets.kitti import Kitti
from pcreg.datasets.simulated.outdoor import record
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import inverse
from pcreg.kernels.grid import grid_sample
from pcreg.runtime.files import replacing

VOXEL = 0.3
WITHIN = 0.45  # metres: a point with another this near is shared
SCANS = 6  # of each sequence, for all but the overlap
# What the procedural side of each comparison is drawn from.
LIKE = {
    "wheels": [(kind, "HDL-64E") for kind in ("city", "square", "old town", "suburb", "car park", "yard")],
    "hand": [(kind, "OS0-64") for kind in ("hall", "court", "hall", "square")],
}
COLORS = {"wheels": "#2b5f9e", "hand": "#c8702a"}


@dataclass(frozen=True)
class Sequence:
    """Clouds (N, 3) as measured, and where the sensor was (S, 4, 4)."""

    clouds: list[np.ndarray]
    T_world_cloud: np.ndarray


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("synthetic_outdoor", description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--wheels", type=int, help="number of a drive with an HDL-64E")
    parser.add_argument("--hand", type=int, help="number of a walk with a LiDAR of a wide field")
    parser.add_argument("--out", type=Path, default=Path("docs/synthetic_outdoor.png"))
    parser.add_argument("--recordings", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    both = {}
    for name, number in (("wheels", options.wheels), ("hand", options.hand)):
        if number is None:
            continue
        drawn = (LIKE[name][n % len(LIKE[name])] for n in range(options.recordings))
        made = [record(options.seed, n, "cpu", kind, model) for n, (kind, model) in enumerate(drawn)]
        both[name] = {
            "real": [_real(options.root, number)],
            "procedural": [Sequence([c.numpy() for c in r.clouds], r.T_world_cloud) for r in made],
        }
    _plot(both, options.out)


def _real(root: Path, number: int) -> Sequence:
    kitti = Kitti(root, number, truth="odometry")
    ((name, drive),) = kitti.drives.items()
    T = np.linalg.inv(drive.T_camera_lidar) @ drive.T_world_camera @ drive.T_camera_lidar
    frames = np.arange(0, len(T), 5)
    clouds = [kitti.cloud(f"{name}/{frame:06d}") for frame in frames]
    return Sequence([cloud[np.linalg.norm(cloud, axis=1) > 0.3] for cloud in clouds], T[frames])


@dataclass(frozen=True)
class Statistics:
    """Histograms and curves of one sequence; what they are over is in `_plot`."""

    by_range: np.ndarray  # thinned points per scan in each bin of RANGES
    spacing: np.ndarray  # metres from a point to its nearest, median in each bin of RANGES
    per_voxel: np.ndarray  # share of voxels with 1, 2, ... points
    vertical: np.ndarray  # share of points whose normal's |z| is in each bin of UNIT
    thickness: np.ndarray  # share of points whose neighbours lie that far off their plane
    height: np.ndarray  # share of thinned points at each height over the sensor
    overlap: np.ndarray  # mean overlap of pairs in each bin of APART

    @staticmethod
    def of(sequence: Sequence) -> "Statistics":
        some = sequence.clouds[:: max(1, len(sequence.clouds) // SCANS)][:SCANS]
        each = [_of_scan(cloud) for cloud in some]
        means = [_mean(np.stack([scan[key] for scan in each])) for key in range(6)]
        return Statistics(*means, _overlap(sequence))


def _mean(values: np.ndarray) -> np.ndarray:
    """Of each column (N, K), leaving out what is not known; not a number where nothing is."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0).sum(0)
    return np.where(known.any(0), total / known.sum(0).clip(min=1), np.nan)


RANGES = np.array([0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 60, 80])
UNIT = np.linspace(0, 1, 21)
THICKNESS = np.linspace(0, 0.3, 31)
HEIGHTS = np.linspace(-4, 10, 57)
APART = np.array([0, 2, 5, 8, 12, 16, 20, 25, 30, 40])


def _thin(points: np.ndarray) -> np.ndarray:
    import torch

    kept = grid_sample(torch.from_numpy(points).float(), torch.tensor([len(points)]), VOXEL)
    return points[kept.numpy()]


def _of_scan(points: np.ndarray) -> tuple[np.ndarray, ...]:
    """The six statistics of a scan, in the order of Statistics."""
    away = np.linalg.norm(points, axis=1)
    thinned = _thin(points)
    by_range = np.histogram(np.linalg.norm(thinned, axis=1), RANGES)[0].astype(float)
    some = np.random.default_rng(0).choice(len(points), min(8000, len(points)), replace=False)
    nearest = cKDTree(points).query(points[some], k=2)[0][:, 1]
    within = np.digitize(away[some], RANGES) - 1
    bins = [nearest[within == n] for n in range(len(RANGES) - 1)]
    spacing = np.array([np.median(each) if len(each) > 20 else np.nan for each in bins])
    counts = np.unique(np.floor(points / VOXEL).astype(int), axis=0, return_counts=True)[1]
    per_voxel = np.histogram(counts, np.arange(1, 22))[0] / len(counts)
    tree = cKDTree(thinned)
    _, neighbours = tree.query(thinned, k=12, distance_upper_bound=1.5)
    full = (neighbours < len(thinned)).all(1)
    patches = thinned[neighbours[full]]
    patches = patches - patches.mean(1, keepdims=True)
    values, vectors = np.linalg.eigh(patches.transpose(0, 2, 1) @ patches / 12)
    vertical = np.histogram(np.abs(vectors[:, 2, 0]), UNIT)[0] / max(1, len(values))
    thickness = np.histogram(np.sqrt(values[:, 0].clip(0)), THICKNESS)[0] / max(1, len(values))
    height = np.histogram(thinned[:, 2], HEIGHTS)[0] / len(thinned)
    return by_range, spacing, per_voxel, vertical, thickness, height


def _overlap(sequence: Sequence) -> np.ndarray:
    thinned = [_thin(cloud) for cloud in sequence.clouds]
    found = [[] for _ in APART[1:]]
    for i in range(len(thinned)):
        for j in range(i):
            T = inverse(sequence.T_world_cloud[i]) @ sequence.T_world_cloud[j]
            place = np.searchsorted(APART, np.linalg.norm(T[:3, 3])) - 1
            if 0 <= place < len(found) and len(found[place]) < 6:
                found[place].append(measured_overlap(thinned[j], thinned[i], T, WITHIN))
    return np.array([np.mean(each) if each else np.nan for each in found])


def _plot(both: dict[str, dict[str, list[Sequence]]], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 6.5 + 5.2 * len(both)), dpi=80, layout="constrained")
    middle = (APART[1:] + APART[:-1]) / 2
    ranges = (RANGES[1:] + RANGES[:-1]) / 2
    panels = (
        ("by_range", "points per scan and metre, thinned", ranges, "range, m"),
        ("spacing", "distance to the nearest point, m", ranges, "range, m"),
        ("per_voxel", "share of the voxels of 0.3 m", np.arange(1, 21), "points in the voxel"),
        ("vertical", "share of normals", UNIT[1:] - 0.025, "|z| of the normal"),
        ("thickness", "share of points", THICKNESS[1:] - 0.005, "spread off the local plane, m"),
        ("height", "share of points, thinned", HEIGHTS[1:] - 0.125, "height over the sensor, m"),
        ("overlap", "overlap within 0.45 m, thinned", middle, "distance of the pair, m"),
    )
    charts, pictures = figure.subfigures(2, 1, height_ratios=[5, 4 * len(both)])
    axes = dict(zip((panel[0] for panel in panels), charts.subplots(2, 4).flat, strict=False))
    charts.axes[-1].set_axis_off()
    for name, kinds in both.items():
        for kind, sequences in kinds.items():
            statistics = [Statistics.of(sequence) for sequence in sequences]
            for key, title, x, label in panels:
                values = np.stack([getattr(s, key) for s in statistics])
                if key == "by_range":
                    values = values / np.diff(RANGES)
                style = {"color": COLORS[name], "ls": "-" if kind == "real" else "--"}
                known = ~np.isnan(values).all(0)
                values, at = values[:, known], x[known]
                axes[key].plot(at, _mean(values), label=f"{kind}, {name}", lw=2, **style)
                if len(values) > 1:
                    low, high = np.nanquantile(values, [0.1, 0.9], axis=0)
                    axes[key].fill_between(at, low, high, color=COLORS[name], alpha=0.12, lw=0)
                axes[key].set(title=title, xlabel=label)
    axes["spacing"].set_yscale("log")
    axes["per_voxel"].set_yscale("log")
    axes["by_range"].legend()
    grid = pictures.add_gridspec(2 * len(both), 6)
    for row, (name, kinds) in enumerate(both.items()):
        real = kinds["real"][0].clouds
        shown = [("real", real[n]) for n in np.linspace(0, len(real) - 1, 4).astype(int)[:3]]
        shown += [("procedural", s.clouds[len(s.clouds) // 2]) for s in kinds["procedural"][:9]]
        reach = 50 if name == "wheels" else 20
        for n, (kind, cloud) in enumerate(shown):
            place = pictures.add_subplot(grid[2 * row + n // 6, n % 6])
            thinned = _thin(cloud)
            thinned = thinned[np.argsort(thinned[:, 2])]
            colors = thinned[:, 2].clip(-2.5, 5)
            place.scatter(thinned[:, 0], thinned[:, 1], c=colors, s=0.4, cmap="turbo", lw=0)
            place.set(
                xlim=(-reach, reach),
                ylim=(-reach, reach),
                aspect="equal",
                title=f"{kind}, {name}",
                xticks=[],
                yticks=[],
            )
    with replacing(out) as temporary:
        figure.savefig(temporary)


if __name__ == "__main__":
    main()
