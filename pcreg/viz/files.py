"""The files of a registration: result, aligned cloud, and optionally a picture and a page.

The page contains everything it shows, loads nothing, and draws on a plain canvas, without a graphics card.
"""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.arrays import every_nth
from pcreg.geometry.overlap import distances_to
from pcreg.geometry.se3 import transform, translation
from pcreg.io.cloud import Cloud, write_ply
from pcreg.registration.result import Registration
from pcreg.runtime.files import replacing, write_text
from pcreg.runtime.progress import Clock
from pcreg.viz.overview import SOURCE, TARGET, byte, overview, shown, upright

MAX_ALIGNED_POINTS = 5_000_000  # of each cloud in aligned.ply: 270 MB, which viewers still open
MAX_LINES = 400  # of matches; more hide the clouds
COORDINATE_STEPS = 65_535  # across a cloud: 2 mm in 120 m


def write(
    folder: Path,
    clouds: tuple[Cloud, Cloud],
    registration: Registration,
    record: dict[str, Any],
    *,
    picture: bool = True,
    html: bool = False,
) -> tuple[list[Path], dict[str, float]]:
    """Write the files into `folder`, each whole; returns their paths, and the seconds by step.

    result.json, with the record, is written first, so that no error in a picture loses the answer. Raises
    OutputError for the first file that cannot be written.
    """
    clock = Clock()
    paths = [folder / "result.json", folder / "aligned.ply"]
    again = paths[0].is_file()
    write_text(paths[0], json.dumps(record, indent=2) + "\n")
    source, target = (cloud.points for cloud in clouds)
    some, others = (every_nth(points, MAX_ALIGNED_POINTS) for points in (source, target))
    colors = np.repeat(np.array([byte(SOURCE), byte(TARGET)]), [len(some), len(others)], axis=0)
    write_ply(paths[1], np.concatenate([transform(registration.T_target_source, some), others]), colors)
    clock.lap("write")
    title = f"{_printable(record['source'])} to {_printable(record['target'])}: {registration.verdict}"
    if picture:
        paths.append(folder / "overview.png")
        with replacing(paths[-1]) as temporary:
            limit = 2 * registration.voxel
            overview(source, target, registration.T_target_source, temporary, limit=limit, title=title)
    if html:
        paths.append(folder / "viewer.html")
        viewer(source, target, registration, paths[-1], title=title, record=record)
    if again:  # without an earlier result.json such files are not ours
        for other in {folder / "overview.png", folder / "viewer.html"}.difference(paths):
            other.unlink(missing_ok=True)
    clock.lap("draw")
    return paths, clock.seconds


def embedded(registration: Registration) -> str:
    """The picture of a registration that has its clouds, as an element of HTML."""
    picture, (source, target) = BytesIO(), (cloud.points for cloud in registration.clouds)
    overview(source, target, registration.T_target_source, picture, limit=2 * registration.voxel)
    return f'<img width="900" src="data:image/png;base64,{b64encode(picture.getvalue()).decode()}">'


def _printable(file: str) -> str:
    """Name of a file, in which the replacement character stands for bytes that are not UTF-8."""
    return os.fsencode(Path(file).name).decode("utf-8", "replace")


def viewer(
    source: np.ndarray,
    target: np.ndarray,
    registration: Registration,
    path: str | Path,
    *,
    title: str,
    record: Mapping[str, Any],
) -> None:
    """Write the page of a registration of source (N, 3) to target (M, 3), atomically.

    The page also shows the `record`. It draws at most 150,000 points of a cloud, and 400 matches.
    """
    source, target = shown(source), shown(target)
    limit = 2 * registration.voxel
    distance = distances_to(target, source, registration.T_target_source, limit)
    distance = np.where(np.isfinite(distance), np.round(254 * distance / limit), 255)
    T_page_target = upright(target)
    own = source.mean(0)  # the page computes in float32, too coarse for map coordinates
    T_source_own = translation(own)
    lines = every_nth(registration.matched_points, MAX_LINES)
    ends = np.stack([lines[:, 0] - own, transform(T_page_target, lines[:, 1])], axis=1)
    content = {
        "source": packed(source - own),
        "target": packed(transform(T_page_target, target)),
        "residual": _encoded(distance.astype("u1")),
        "before": (T_page_target @ T_source_own).ravel().tolist(),
        "after": (T_page_target @ registration.T_target_source @ T_source_own).ravel().tolist(),
        "lines": ends.round(4).ravel().tolist(),
        "limit": limit,
    }
    write_page(path, "pcreg.viz", "viewer.html", title=title, record=record, content=content)


def packed(points: np.ndarray) -> dict[str, Any]:
    """Encode points (N, 3) as 16-bit integers between the corners of their box."""
    low = points.min(0)
    step = np.maximum(np.ptp(points, axis=0), 1e-9) / COORDINATE_STEPS
    return {
        "low": low.tolist(),
        "step": step.tolist(),
        "rows": _encoded(np.round((points - low) / step).astype("<u2")),
    }


def _encoded(values: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode()


def write_page(path: str | Path, package: str, template: str, **values: Any) -> None:
    """Write a page by a Jinja template of a package: values are escaped, and `| base64` embeds bytes."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(lambda name: (resources.files(package) / name).read_text(encoding="utf-8")),
    )
    environment.filters["base64"] = lambda content: b64encode(content).decode()
    page = environment.get_template(template).render(values)
    write_text(path, page)
