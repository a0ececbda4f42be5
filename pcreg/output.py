"""The files of one registration: result.json, aligned.ply, overview.png and, asked for, viewer.html."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.clock import Clock
from pcreg.cloud import Cloud, write_ply_parts
from pcreg.figures import SOURCE, TARGET, overview
from pcreg.files import replacing
from pcreg.geometry import transform
from pcreg.registration import Registration
from pcreg.viewer import viewer

MOST_ALIGNED = 5_000_000  # points of each cloud in aligned.ply: 270 MB, which viewers still open
PART = 1 << 18  # points moved and written at a time


@dataclass(frozen=True)
class Task:
    """What was asked for."""

    files: tuple[str, str]  # source and target, as given
    units: tuple[str, str]  # of their coordinates
    descriptor: str
    seed: int


def facts(registration: Registration, task: Task) -> dict[str, Any]:
    """The figures of a registration and what they were computed with, as plain values."""
    return {
        "source": task.files[0],
        "target": task.files[1],
        "registered": registration.registered,
        "confidence": registration.confidence,
        "reason": registration.reason,
        "notes": list(registration.notes),
        "T_target_source": registration.T_target_source.tolist(),
        "inliers": registration.inliers,
        "overlap": registration.overlap,
        "rmse": registration.rmse,
        "evidence": asdict(registration.evidence),
        "rival": None if registration.rival is None else registration.rival.tolist(),
        "viewpoints": {
            side: None if viewpoint is None else viewpoint.tolist()
            for side, viewpoint in zip(("source", "target"), registration.viewpoints, strict=True)
        },
        "units": list(task.units),
        "descriptor": task.descriptor,
        "voxel": registration.voxel,
        "seed": task.seed,
        "version": version("pcreg"),
    }


def write(
    folder: Path, clouds: tuple[Cloud, Cloud], registration: Registration, task: Task, *, html: bool
) -> tuple[list[Path], dict[str, float]]:
    """Write the files into `folder`, each whole; returns their paths, and the seconds by step.

    result.json comes last: where it is, the others are.
    """
    source, target = (cloud.points for cloud in clouds)
    found, clock = facts(registration, task), Clock()
    verdict = "registered" if registration.registered else "NOT registered"
    title = f"{Path(task.files[0]).name} to {Path(task.files[1]).name}: {verdict}"
    paths = [folder / "aligned.ply", folder / "overview.png", folder / "result.json"]
    write_aligned(paths[0], source, target, registration.T_target_source)
    clock.lap("write")
    overview(
        source,
        target,
        registration.T_target_source,
        paths[1],
        limit=2 * registration.voxel,
        title=f"{title}, confidence {registration.confidence:.2f}",
    )
    if html:
        paths.append(folder / "viewer.html")
        viewer(source, target, registration, paths[-1], title=title, facts=found)
    clock.lap("draw")
    seconds = registration.seconds | clock.seconds
    found["points"] = {
        side: len(each.points) for side, each in zip(("source", "target"), clouds, strict=True)
    }
    found["dropped"] = {side: each.dropped for side, each in zip(("source", "target"), clouds, strict=True)}
    found["seconds"] = seconds
    with replacing(paths[2]) as temporary:
        temporary.write_text(json.dumps(found, indent=2) + "\n")
    return paths, seconds


def every(points: np.ndarray) -> int:
    """n, where every n-th point of a cloud (N, 3) goes into aligned.ply; 1 up to five million points."""
    return max(1, -(-len(points) // MOST_ALIGNED))


def write_aligned(path: Path, source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> None:
    """Both clouds (N, 3), (M, 3) as one in the target's frame: source orange, target blue.

    Of a cloud of more than five million points every n-th is written, so that no more than that are.
    """
    source, target = (points[:: every(points)] for points in (source, target))

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for points, T, color in ((source, T_target_source, SOURCE), (target, None, TARGET)):
            for start in range(0, len(points), PART):
                part = points[start : start + PART]
                yield part if T is None else transform(T, part), (color * 255).astype(np.uint8)

    write_ply_parts(path, len(source) + len(target), parts(), colored=True)
