"""The pairs that a benchmark got most wrong, as pictures: where the source was put, and where it belongs."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcreg.evaluation import aggregate
from pcreg.evaluation.caption import Setup
from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.pairs import PairDataset
from pcreg.viz.overview import SOURCE, TARGET
from pcreg.viz.render import render

SIZE = (480, 360)


@dataclass(frozen=True)
class FailureCase:
    """A pair that went wrong."""

    row: dict[str, Any]  # of pcreg.evaluation.aggregate
    estimated: bytes | None  # JPEG; None if no motion was found
    true: bytes  # JPEG


def failures(
    records: Sequence[dict[str, Any]], setup: Setup, dataset: PairDataset, count: int = 20
) -> list[FailureCase]:
    """The pairs with the largest RMSE at the first N and seed, those without an estimate first."""
    rows = aggregate.rows(records, setup.protocol.samples[0], setup.seeds[0])
    chosen = sorted(rows, key=lambda row: np.inf if row["rmse"] is None else row["rmse"], reverse=True)
    return [_drawn(row, dataset, row.get("voxel") or setup.protocol.voxel) for row in chosen[:count]]


def _drawn(row: dict[str, Any], dataset: PairDataset, voxel: float | None) -> FailureCase:
    """The clouds are downsampled to `voxel`; None: they could not be prepared, and are shown as they are."""
    source, target = (dataset.cloud(row[side]) for side in ("source", "target"))
    if voxel:
        source, target = source[voxel_downsample(source, voxel)], target[voxel_downsample(target, voxel)]
    camera = _along_the_thinnest(target)
    views = [
        None
        if T is None
        else _jpeg(
            render([transform(np.array(T), source), target], [SOURCE, TARGET], camera, size=SIZE, splat=3)
        )
        for T in (row["T_target_source"], row["truth"])
    ]
    return FailureCase(row, *views)


def _along_the_thinnest(points: np.ndarray) -> np.ndarray:
    """The camera (3, 3) that sees the cloud (N, 3) at its widest: right, up and towards the viewer."""
    _, _, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    axes[2] = np.cross(axes[0], axes[1])
    return axes


def _jpeg(image: np.ndarray) -> bytes:
    """The bytes of an RGB image (H, W, 3) in 0..1."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, np.ascontiguousarray(np.clip(image, 0, 1)), format="jpg", pil_kwargs={"quality": 85})
    return buffer.getvalue()
