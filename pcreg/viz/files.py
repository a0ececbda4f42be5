"""The files of a registration: result, aligned cloud, and by option picture and page."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.io.cloud import Cloud, write_ply_parts
from pcreg.registration.result import Registration, Task, record_of
from pcreg.runtime.files import replacing
from pcreg.runtime.progress import Clock
from pcreg.viz.overview import SOURCE, TARGET, overview
from pcreg.viz.viewer import viewer

MAX_ALIGNED_POINTS = 5_000_000  # of each cloud in aligned.ply: 270 MB, which viewers still open
CHUNK_POINTS = 1 << 18  # moved and written at a time


def write(
    folder: Path,
    clouds: tuple[Cloud, Cloud],
    registration: Registration,
    task: Task,
    *,
    picture: bool = True,
    html: bool = False,
) -> tuple[list[Path], dict[str, float]]:
    """Write the files into `folder`, each whole; returns their paths, and the seconds by step.

    result.json comes first: the answer is kept whatever becomes of the pictures. Raises OutputError for
    the first file that cannot be written.
    """
    clock = Clock()
    paths = [folder / "result.json", folder / "aligned.ply"]
    with replacing(paths[0]) as temporary:
        temporary.write_text(json.dumps(result(clouds, registration, task), indent=2) + "\n")
    source, target = (cloud.points for cloud in clouds)
    T_target_source = registration.T_target_source
    write_aligned(paths[1], source, target, T_target_source)
    clock.lap("write")
    verdict = "registered" if registration.registered else "NOT registered"
    title = f"{' to '.join(map(_drawn, task.files))}: {verdict}"
    if picture:
        paths.append(folder / "overview.png")
        limit, words = 2 * registration.voxel, f"{title}, confidence {registration.confidence:.2f}"
        overview(source, target, T_target_source, paths[-1], limit=limit, title=words)
    if html:
        paths.append(folder / "viewer.html")
        viewer(source, target, registration, paths[-1], title=title, facts=record_of(registration, task))
    clock.lap("draw")
    return paths, clock.seconds


def result(clouds: tuple[Cloud, Cloud], registration: Registration, task: Task) -> dict[str, Any]:
    """The content of result.json, as plain values."""
    sides = dict(zip(("source", "target"), clouds, strict=True))
    return record_of(registration, task) | {
        "points": {side: len(cloud.points) for side, cloud in sides.items()},
        "dropped": {side: cloud.dropped for side, cloud in sides.items()},
        "seconds": registration.seconds,
    }


def _drawn(file: str) -> str:
    """The name of a file as it can be drawn: bytes that are no UTF-8 become question marks."""
    return os.fsencode(Path(file).name).decode("utf-8", "replace")


def stride(points: np.ndarray) -> int:
    """The step n with which every n-th point goes into aligned.ply."""
    return max(1, -(-len(points) // MAX_ALIGNED_POINTS))


def write_aligned(path: Path, source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> None:
    """Both clouds (N, 3), (M, 3) as one in the target's frame: source orange, target blue.

    Of a cloud of more than five million points every n-th is written, so that no more than that are.
    """
    source, target = (points[:: stride(points)] for points in (source, target))

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for points, T, color in ((source, T_target_source, SOURCE), (target, None, TARGET)):
            for start in range(0, len(points), CHUNK_POINTS):
                part = points[start : start + CHUNK_POINTS]
                yield part if T is None else transform(T, part), (color * 255).astype(np.uint8)

    write_ply_parts(path, len(source) + len(target), parts(), colored=True)
