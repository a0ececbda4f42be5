"""One self-contained HTML file of a benchmark: tables, charts, and pictures of the worst pairs."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.evaluation import metrics
from pcreg.evaluation.charts import charts
from pcreg.evaluation.protocol import Setup, caption
from pcreg.evaluation.tables import per_scene, tables
from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.pairs import PairDataset
from pcreg.viz.overview import SOURCE, TARGET
from pcreg.viz.page import write_page
from pcreg.viz.render import render

PICTURES = 20
SIZE = (480, 360)


def report(
    records: Sequence[dict[str, Any]],
    setup: Setup,
    dataset: PairDataset,
    path: str | Path,
    pictures: int = PICTURES,
) -> None:
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
        failures=failures(records, setup, dataset, pictures),
    )


def failures(
    records: Sequence[dict[str, Any]], setup: Setup, dataset: PairDataset, count: int
) -> list[dict[str, Any]]:
    """Rows, pictures (JPEG or None) and words of the `count` pairs with the largest RMSE or no estimate."""
    rows = metrics.rows(records, setup.protocol.samples[0], setup.seeds[0])
    rows.sort(key=lambda row: np.inf if row["rmse"] is None else row["rmse"], reverse=True)
    return [
        {"row": row, **_pictures(row, setup, dataset), "words": _figures(row, setup)} for row in rows[:count]
    ]


def _pictures(row: dict[str, Any], setup: Setup, dataset: PairDataset) -> dict[str, bytes | None]:
    """Pictures by the estimated and the true motion; unusable clouds are shown as they are."""
    source, target = (dataset.cloud(row[side]) for side in ("source", "target"))
    if voxel := row.get("voxel") or setup.protocol.voxel:
        source, target = source[voxel_downsample(source, voxel)], target[voxel_downsample(target, voxel)]
    _, _, camera = np.linalg.svd(target - target.mean(0), full_matrices=False)  # sees the widest side
    camera[2] = np.cross(camera[0], camera[1])

    def picture(T: list[list[float]] | None) -> bytes | None:
        if T is None:
            return None
        clouds = [transform(np.array(T), source), target]
        return _jpeg(render(clouds, [SOURCE, TARGET], camera, size=SIZE, splat=3))

    return {"estimated": picture(row["T_target_source"]), "true": picture(row["truth"])}


def _jpeg(image: np.ndarray) -> bytes:
    """The bytes of an RGB image (H, W, 3) in 0..1."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, np.ascontiguousarray(np.clip(image, 0, 1)), format="jpg", pil_kwargs={"quality": 85})
    return buffer.getvalue()


def _figures(row: dict[str, Any], setup: Setup) -> str:
    """The line below the pictures of a pair."""
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
