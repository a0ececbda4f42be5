"""Reading and checks of clouds and settings as callers give them."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pcreg.arrays import to_host
from pcreg.features.base import check_voxel
from pcreg.io.cloud import Cloud, cloud_of, coordinates, read_cloud
from pcreg.registration.clouds.outliers import MAX_COORDINATE_METRES, without_outliers
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    import open3d
    import torch

Points: TypeAlias = "str | Path | np.ndarray | torch.Tensor | open3d.geometry.PointCloud"
VIEWPOINTS = ("auto", "sensor")
# One of VIEWPOINTS; x, y, z; or a row x, y, z for each point
ViewpointOption: TypeAlias = str | Sequence[float] | np.ndarray
MIN_SIZE_METRES = 0.5  # smaller clouds in another unit than m get a note: they may be in metres
MAX_STEP = 1e-3  # between float32 coordinates, as a fraction of the extent; larger ones get a note
METRES = {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": 0.3048, "in": 0.0254}  # by unit


def as_cloud(cloud: Points, name: str, unit: str = "m", columns: int | None = None) -> Cloud:
    """Read a cloud in metres, without rows of NaN or infinity and without outliers.

    `cloud` is the path of a file, or rows x y z and perhaps more (N, 3 to 32) as an array or tensor, or has
    such rows as `points` or `point.positions`, as Open3D's point clouds do. `columns` is for .bin
    files, as in `read_cloud`. Raises InputError, which calls the cloud by `name`.
    """
    metres = _metres(unit, name)
    if columns is not None and not _is_whole(columns):
        raise InputError(f"{name}: columns={columns!r}: a whole number of columns is needed, such as 5")
    is_file = isinstance(cloud, str | Path)
    read = read_cloud(cloud, columns) if is_file else cloud_of(points_of(cloud, name))
    if unit != "m":
        viewpoint = None if read.viewpoint is None else read.viewpoint * metres
        read = replace(read, points=read.points * metres, viewpoint=viewpoint, units=unit)
    cloud = without_outliers(read, name)
    notes, size = [], np.ptp(cloud.box, axis=0).max()
    if unit != "m" and 0 < size < MIN_SIZE_METRES:
        doubt = "if its coordinates are metres, give m to --units"
        notes.append(f"only {1000 * size:.3g} mm across in {unit}: {doubt}")
    steps = np.spacing(np.float32(np.abs(cloud.box).max(0) / metres))  # in the unit, of each axis
    coarse = (steps * metres > MAX_STEP * size) & (size > 0)
    if coarse.any():
        given = np.float32(cloud.points / metres)
        # Multiples of two steps, such as whole metres, are a grid of their own and not rounded
        is_rounded = (given[:, coarse] % (2 * steps[coarse])).any()
        if is_rounded and np.array_equal(np.float64(given) * metres, cloud.points):
            doubt = "as 32-bit numbers far from the origin are: store 64-bit numbers, or subtract an offset"
            notes.append(f"coordinates are rounded to {steps.max():g} {unit}, {doubt}")
    return replace(cloud, notes=(*cloud.notes, *notes)) if notes else cloud


def points_of(cloud: Points, name: str, unit: str = "m", columns: int | None = None) -> np.ndarray:
    """Return points (N, 3) float64, metres, with a row for each row of the file or array.

    Rows without a point are NaN, as are rows that a prepared cloud leaves out. The points are a copy: the
    caller may change the array later. A prepared cloud is in metres, whatever the unit.
    """
    metres, is_file = _metres(unit, name), isinstance(cloud, str | Path)
    read = read_cloud(cloud, columns) if is_file else getattr(cloud, "cloud", None)
    if read is None:
        points = metres * coordinates(rows_of(cloud, name), name)
        points[~np.isfinite(points).all(1)] = np.nan
    else:
        points = np.full((len(read.points) + read.dropped, 3), np.nan)
        points[slice(None) if read.rows is None else read.rows] = read.points * (metres if is_file else 1.0)
    return points


def rows_of(cloud: Points, name: str) -> np.ndarray:
    """Return the rows of an array, a tensor or a point cloud of Open3D as an array."""
    try:
        if hasattr(cloud, "point"):  # of open3d.t
            cloud = cloud.point.positions.cpu().numpy()
        elif hasattr(cloud, "points"):
            cloud = cloud.points
        if hasattr(cloud, "detach"):
            cloud = cloud.detach().cpu()
            cloud = (cloud.double() if cloud.is_floating_point() else cloud).numpy()  # NumPy has no bfloat16
        if isinstance(cloud, np.ma.MaskedArray):
            cloud = cloud.astype(np.float64).filled(np.nan)
        if (rows := np.asarray(cloud)).ndim == 0:
            raise TypeError("no array")
        return rows
    except (KeyError, TypeError, ValueError) as error:  # rows of several lengths, a sparse tensor
        raise InputError(f"{name}: is not an array of numbers; pass rows x y z, (N, 3)") from error


def _metres(unit: str, name: str) -> float:
    if not isinstance(unit, str) or unit not in METRES:
        raise InputError(f"{name}: unit {unit} is unknown; use one of {' '.join(METRES)}")
    return METRES[unit]


def check_seed(seed: int) -> None:
    """Raise InputError unless the seed is a whole number, 0 or more."""
    if not _is_whole(seed) or seed < 0:
        raise InputError(f"seed={seed!r}: a whole number is needed, 0 or more")


def check_settings(voxel: float | None, weights: str | Path | None, device: str) -> None:
    """Raise InputError for a setting of another type, or a voxel size out of range."""
    if voxel is not None:
        check_voxel(voxel)
    if not isinstance(weights, str | Path | None):
        raise InputError(f"weights={weights!r}: name a .safetensors file")
    if not isinstance(device, str):
        raise InputError(f"device={device!r}: use auto, cpu, cuda or cuda:N")


def check_viewpoint(option: ViewpointOption) -> ViewpointOption:
    """Return the option, positions as an array: (3,), or (N, 3) that may hold NaN; InputError for others."""
    if isinstance(option, str):
        if option in VIEWPOINTS:
            return option
    else:
        try:
            position = np.array(to_host(option), dtype=np.float64)  # a copy, as of the points
        except (TypeError, ValueError):
            position = np.empty(0)
        if position.shape == (3,) and (np.abs(position) <= MAX_COORDINATE_METRES).all():
            return position
        if position.ndim == 2 and position.shape[1] == 3:
            return position
    raise InputError(
        f"viewpoint {shorten(str(option), 60)} is unknown; use {', '.join(VIEWPOINTS)}, or x, y, z in metres"
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
