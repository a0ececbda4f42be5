"""How procedural fragments compare with real ones: one figure of their statistics.

    python -m benchmarks.synthetic_indoor FRAGMENTS --out docs/synthetic_indoor.png

FRAGMENTS holds SCENE/cloud_bin_N.ply with cloud_bin_N.info.txt, as 3DMatch's test fragments come. Both kinds
are thinned to one point per 2.5 cm first.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree

from pcreg.datasets.simulated.indoor.recording import record
from pcreg.geometry.se3 import inverse, transform
from pcreg.io.cloud import read_cloud
from pcreg.kernels.grid import grid_sample
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing

VOXEL = 0.025
WITHIN = 0.0375  # metres: a point with another this near is shared
COLORS = {"real": "#2b5f9e", "procedural": "#c8702a"}


@dataclass(frozen=True)
class Sequence3D:
    """Thinned clouds (N, 3) of one scene, in the order in which they were seen, and their poses."""

    clouds: list[np.ndarray]
    T_world_cloud: np.ndarray


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("synthetic_indoor", description=__doc__.partition("\n")[0])
    parser.add_argument("fragments", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/synthetic_indoor.png"))
    parser.add_argument("--recordings", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    both = {
        "real": _real(options.fragments),
        "procedural": [_procedural(options.seed, n) for n in range(options.recordings)],
    }
    plot({kind: [Statistics.of(s) for s in scenes] for kind, scenes in both.items()}, options.out)


def _real(root: Path) -> list[Sequence3D]:
    scenes = []
    for folder in sorted(path for path in root.glob("*") if path.is_dir()):
        names = sorted(folder.glob("*.info.txt"), key=lambda path: int(path.name.split("_")[2].split(".")[0]))
        poses = np.stack([np.loadtxt(path, skiprows=1) for path in names])
        clouds = [
            _thin(read_cloud(path.with_name(path.name.replace(".info.txt", ".ply"))).points) for path in names
        ]
        scenes.append(Sequence3D(clouds, poses))
    if not scenes:
        raise InputError(f"{root}: holds no scenes; name the folder with SCENE/cloud_bin_N.ply in it")
    return scenes


def _procedural(seed: int, index: int) -> Sequence3D:
    recording = record(seed, index)
    return Sequence3D([_thin(cloud.numpy()) for cloud in recording.clouds], recording.T_world_cloud)


def _thin(points: np.ndarray) -> np.ndarray:
    points = torch.from_numpy(np.ascontiguousarray(points)).float()
    return points[grid_sample(points, torch.tensor([len(points)]), VOXEL)].double().numpy()


@dataclass(frozen=True)
class Statistics:
    """Of one scene: per fragment, per point (a sample of them), per pair of fragments."""

    size: np.ndarray  # points of a fragment
    depth: np.ndarray  # of a point, along z
    spacing: np.ndarray  # to the nearest point
    crowd: np.ndarray  # points within 10 cm
    incidence: np.ndarray  # |cos| between normal and ray
    level: np.ndarray  # |cos| between normal and the camera's y axis
    curved: dict[float, np.ndarray]  # by radius: smallest share of the variance, 0 on a plane, 1/3 in a ball
    straight: np.ndarray  # (largest - second) / largest variance within 10 cm: 1 on a line
    overlap: np.ndarray  # of pairs with at least 10 %

    @classmethod
    def of(cls, scene: Sequence3D, sample: int = 100) -> "Statistics":
        rng = np.random.default_rng(0)
        rows: dict[str, list] = {
            name: [] for name in ("depth", "spacing", "crowd", "incidence", "level", "straight")
        }
        curved: dict[float, list] = {0.05: [], 0.1: [], 0.25: []}
        for cloud in scene.clouds:
            tree = cKDTree(cloud)
            at = cloud[rng.choice(len(cloud), min(sample, len(cloud)), replace=False)]
            rows["depth"].append(at[:, 2])
            rows["spacing"].append(tree.query(at, k=2)[0][:, 1])
            for radius, values in curved.items():
                near = tree.query_ball_point(at, radius)
                variances, normals = zip(*(_principal(cloud[n]) for n in near), strict=True)
                variances = np.stack(variances)
                values.append(variances[:, 0] / variances.sum(1))
                if radius == 0.1:
                    normals = np.stack(normals)
                    rows["crowd"].append(np.array([len(n) for n in near]))
                    rows["straight"].append((variances[:, 2] - variances[:, 1]) / variances[:, 2])
                    rows["incidence"].append(np.abs((normals * at).sum(1)) / np.linalg.norm(at, axis=1))
                    rows["level"].append(np.abs(normals[:, 1]))
        joined = {name: np.concatenate(values) for name, values in rows.items()}
        return cls(
            size=np.array([len(cloud) for cloud in scene.clouds]),
            curved={radius: np.concatenate(values) for radius, values in curved.items()},
            overlap=_overlaps(scene),
            **joined,
        )


def _principal(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (3,), rising, and the direction (3,) of the smallest; a point alone varies by a nanometre."""
    values, vectors = np.linalg.eigh(np.cov(points.T, bias=True) + 1e-18 * np.eye(3))
    return values.clip(1e-18), vectors[:, 0]


def _overlaps(scene: Sequence3D) -> np.ndarray:
    """The share of the smaller cloud that lies in the other, for all pairs with at least 10 %."""
    trees = [cKDTree(cloud) for cloud in scene.clouds]
    few = [cloud[:: max(1, len(cloud) // 300)] for cloud in scene.clouds]
    shared = []
    for i, j in combinations(range(len(few)), 2):
        source, target = (i, j) if len(scene.clouds[i]) < len(scene.clouds[j]) else (j, i)
        T = inverse(scene.T_world_cloud[target]) @ scene.T_world_cloud[source]
        nearest, _ = trees[target].query(transform(T, few[source]), distance_upper_bound=WITHIN)
        shared.append(np.isfinite(nearest).mean())
    shared = np.array(shared)
    return shared[shared >= 0.1]


def plot(statistics: dict[str, Sequence[Statistics]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 10), layout="constrained")
    axes = iter(figure.subplots(3, 4).flat)

    def histogram(title: str, edges: np.ndarray, values) -> None:
        panel = next(axes)
        for kind, scenes in statistics.items():
            heights = [np.histogram(values(s), edges)[0] / max(1, len(values(s))) for s in scenes]
            mean = np.mean(heights, 0)
            panel.stairs(
                mean, edges, color=COLORS[kind], linewidth=1.8, label=f"{kind}, {len(scenes)} scenes"
            )
            for one in heights:
                panel.stairs(one, edges, color=COLORS[kind], linewidth=0.5, alpha=0.3)
            print(f"{title:48} {kind:11} median {np.median(np.concatenate([values(s) for s in scenes])):.4g}")
        panel.set(title=title, yticks=[])

    histogram("points per fragment", np.linspace(0, 30000, 16), lambda s: s.size)
    histogram("depth of a point (m)", np.linspace(0.3, 3.6, 23), lambda s: s.depth)
    histogram("distance to the nearest point (cm)", np.linspace(0, 4, 33), lambda s: 100 * s.spacing)
    histogram("points within 10 cm", np.linspace(0, 120, 31), lambda s: s.crowd)
    histogram("|cos| of normal and ray", np.linspace(0, 1, 21), lambda s: s.incidence)
    histogram("|cos| of normal and the camera's vertical", np.linspace(0, 1, 21), lambda s: s.level)
    for radius in (0.05, 0.1, 0.25):
        histogram(
            f"log10 of least variance / sum within {100 * radius:.0f} cm",
            np.linspace(-4, -0.5, 29),
            lambda s, radius=radius: np.log10(s.curved[radius]),
        )
    histogram("(largest - second) / largest variance, 10 cm", np.linspace(0, 1, 21), lambda s: s.straight)
    histogram("overlap of pairs above 10 %", np.linspace(0.1, 1, 19), lambda s: s.overlap)
    panel = next(axes)
    edges = np.linspace(0.5, 3.5, 13)
    for kind, scenes in statistics.items():
        depth, spacing = (np.concatenate([getattr(s, name) for s in scenes]) for name in ("depth", "spacing"))
        where = np.digitize(depth, edges)
        for share, style in ((10, ":"), (50, "-"), (90, "--")):
            line = [
                np.percentile(100 * spacing[where == n], share) if (where == n).sum() > 50 else np.nan
                for n in range(1, len(edges))
            ]
            panel.plot((edges[1:] + edges[:-1]) / 2, line, style, color=COLORS[kind])
    panel.set(title="nearest point (cm) against depth (m): 10, 50, 90 %", ylim=(0, 4))
    figure.axes[0].legend(frameon=False)
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=70)


if __name__ == "__main__":
    main()
