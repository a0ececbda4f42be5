"""Read and write point cloud files; rows that are not finite are left out.

Coordinates are float64: float32 would round UTM coordinates to 0.5 m.
"""

import glob
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import box
from pcreg.io.formats.arrays import MAX_COLUMNS, read_bin, read_npy, read_npz, viewpoints_of_npz
from pcreg.io.formats.e57 import read_e57, viewpoint_of_e57
from pcreg.io.formats.las import read_las
from pcreg.io.formats.meshes import read_obj, read_off, read_stl
from pcreg.io.formats.pcd import read_pcd, viewpoint_of_pcd
from pcreg.io.formats.ply import SCALARS, read_ply
from pcreg.io.formats.text import read_text
from pcreg.runtime import cached_property
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import replacing


@dataclass(frozen=True)
class Cloud:
    """Finite points (N, 3) float64, metres, in the order of the file."""

    points: np.ndarray
    dropped: int = 0  # number of rows of the file that were left out
    notes: tuple[str, ...] = ()  # sentences on finite rows that were left out, and on a doubtful unit
    viewpoint: np.ndarray | None = None  # sensor, float64, metres: (3,), or (N, 3) with one place per point
    rows: np.ndarray | None = None  # (N,) int64, ascending: row of each point in the file; None: all rows
    units: str = "m"  # unit of the coordinates in the file

    @cached_property
    def box(self) -> np.ndarray:
        """Lower and upper corner (2, 3) of the points; zeros if there are none."""
        return box(self.points) if len(self.points) else np.zeros((2, 3))

    def viewpoints_of_points(self, viewpoints: np.ndarray, name: str) -> np.ndarray:
        """Select the viewpoints (N, 3) of the points from those (M, 3) of all rows of the file.

        Raises InputError, which begins with `name`, if there are not M viewpoints or one is not finite.
        """
        if len(viewpoints) != len(self.points) + self.dropped:
            raise InputError(
                f"{name}: has {len(self.points) + self.dropped} rows and {len(viewpoints)} viewpoints; give "
                "one for each row, or one for all"
            )
        kept = viewpoints if self.rows is None else viewpoints[self.rows]
        if not np.isfinite(kept).all():
            raise InputError(f"{name}: its viewpoints hold NaN or infinity; give finite ones, or none")
        return kept

    def select(self, kept: np.ndarray, *notes: str) -> "Cloud":
        """Keep the points in the rows `kept`, ascending; `notes` say why others are left out."""
        per_point = self.viewpoint is not None and self.viewpoint.ndim == 2
        return Cloud(
            points=self.points[kept],
            dropped=self.dropped + len(self.points) - len(kept),
            notes=(*self.notes, *notes),
            viewpoint=self.viewpoint[kept] if per_point else self.viewpoint,
            rows=kept if self.rows is None else self.rows[kept],
            units=self.units,
        )


def read_cloud(path: str | Path, columns: int | None = None) -> Cloud:
    """Read a point cloud file, whose name ends in one of SUFFIXES.

    An .npz holds the points as `points`, `pcd` or `xyz`, or as its only array. In text (.xyz .txt .csv .asc
    .pts) blanks, commas or semicolons separate the numbers, and a first line may name the columns. Other
    columns are ignored. The points of a mesh (.ply .obj .off .stl) are its vertices, then, of fewer than
    200,000 vertices, points on its faces. The VIEWPOINT of a .pcd and the pose of an .e57 with one scan state
    the sensor position; fields vp_x, vp_y and vp_z of a .pcd and an array `viewpoints` (N, 3) of an .npz
    state one per point. Memory grows with the file (formats.bounds).

    Args:
        path: `~` stands for the home folder.
        columns: float32 numbers per row of a .bin; by default 4 (KITTI) or 5 (nuScenes), by content.

    Raises:
        InputError: The file is missing, of another format, empty, truncated or damaged, or the package for
            its format is not installed.
    """
    path = Path(os.path.expanduser(path))
    reader = _READERS.get(path.suffix.lower())
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; name a file")
    if not os.path.isfile(path):  # Path.is_file raises if a parent folder may not be searched
        pipe = "is a pipe or a device; write its content to a file, and name that"
        raise InputError(f"{path}: {pipe if os.path.exists(path) else 'no such file; check the path'}")
    if reader is None:
        raise InputError(f"{path}: unknown point cloud format; use one of {' '.join(_READERS)}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: may not be read; check its permissions")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; write it again")
    if reader is read_bin:
        reader = partial(read_bin, columns=columns)
    damaged = (
        f"{path}: cannot be read as {path.suffix} ({{error}}); it may be truncated or damaged: write it again"
    )
    # Readers raise nearly any exception on a damaged file, and warn about its numbers.
    with refusing(damaged, Exception), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = reader(path)
        viewpoint_of = _VIEWPOINTS.get(path.suffix.lower())
        viewpoint = viewpoint_of(path) if viewpoint_of else None
    cloud = cloud_of(coordinates(rows, str(path)))
    if viewpoint is not None and viewpoint.ndim == 2:
        viewpoint = cloud.viewpoints_of_points(viewpoint, str(path))
    return replace(cloud, viewpoint=viewpoint)


def natural(name: str) -> list[tuple[int, str]]:
    """Key that sorts scan_2 before scan_10; 1 and 01 have a fixed order, too."""
    parts = re.split(r"(\d+)", name)
    return [*((int(part), "") if part.isdecimal() else (-1, part) for part in parts), (-1, name)]


def files_of(
    named: Sequence[str],
    known: Sequence[str] = (),
    least: int = 2,
    left_out: Callable[[str], bool] = lambda path: False,
) -> list[str]:
    """List the `known` files, then those of `named`, which holds file names and patterns.

    Each file is listed once; those of `named` in natural order, scan_2 before scan_10. Patterns skip files
    for which `left_out` is true. Raises InputError for a folder, for a name or a pattern without a file, and
    for fewer than `least` files.
    """
    found = {os.path.abspath(each): each for each in known}
    new: dict[str, str] = {}  # by absolute path
    for name in map(os.path.expanduser, named):
        if os.path.isdir(name):
            raise InputError(f"{name}: is a folder; name its files, as in '{Path(name) / '*.ply'}'")
        matches = filter(os.path.isfile, glob.glob(name, recursive=True))
        matching = [name] if os.path.isfile(name) else [each for each in matches if not left_out(each)]
        if not matching:
            raise InputError(f"{name}: no such file, and no file matches; check the path")
        new = {os.path.abspath(each): each for each in matching} | new
    for path, each in sorted(new.items(), key=lambda item: natural(item[1])):
        found.setdefault(path, each)
    if len(found) < least:
        raise InputError(f"{' '.join(named)}: too few files match; name {least} or more")
    return list(found.values())


def coordinates(rows: np.ndarray, name: str) -> np.ndarray:
    """Coordinates (N, 3) float64 of rows (N, 3 or more), or of fields x, y and z.

    Names of fields may be in capitals. Raises InputError, which begins with `name`, for other arrays.
    """
    fields = {name.lower(): name for name in sorted(rows.dtype.names or ())}  # x takes precedence over X
    if {"x", "y", "z"} <= fields.keys():
        rows = np.stack([rows[fields[axis]].ravel() for axis in "xyz"], axis=1)
    if rows.ndim != 2 or rows.shape[1] < 3:
        shape = f"an array of shape {rows.shape}"
        raise InputError(f"{name}: holds {shape}; points are rows of at least x y z, (N, 3)")
    if rows.shape[1] > max(len(rows), MAX_COLUMNS):
        raise InputError(
            f"{name}: holds an array of shape {rows.shape}, which looks transposed; points are rows x y z: "
            "transpose it"
        )
    if rows.dtype.kind not in "fiu":
        raise InputError(f"{name}: holds values of type {rows.dtype}; store coordinates as real numbers")
    with np.errstate(invalid="ignore"):  # the conversion of a signalling NaN warns
        points = np.ascontiguousarray(rows if rows.shape[1] == 3 else rows[:, :3], dtype=np.float64)
    if points.base is not None or not points.flags.writeable:  # a view of the file or of a larger array
        points = points.copy()
    return points


def cloud_of(points: np.ndarray) -> Cloud:
    """Make a cloud of the points (N, 3) that are finite."""
    finite = np.isfinite(points)
    return Cloud(points) if finite.all() else Cloud(points).select(np.flatnonzero(finite.all(1)))


def write_ply(path: str | Path, points: np.ndarray, colors: np.ndarray | None = None) -> None:
    """Write points (N, 3), and colours (N, 3) uint8 if given, as binary float64 .ply, atomically."""
    kinds, columns = dict.fromkeys("xyz", "double"), [*points.T]
    if colors is not None:
        kinds |= dict.fromkeys(("red", "green", "blue"), "uchar")
        columns += [*colors.T]
    rows = np.rec.fromarrays(columns, [(name, "<" + SCALARS[kind]) for name, kind in kinds.items()])
    properties = "".join(f"property {kind} {name}\n" for name, kind in kinds.items())
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(rows)}\n{properties}end_header\n"
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(header.encode())
        file.write(rows)


_READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".ply": read_ply,
    ".pcd": read_pcd,
    **dict.fromkeys((".xyz", ".txt", ".csv", ".asc", ".pts"), read_text),
    ".npy": read_npy,
    ".npz": read_npz,
    ".bin": read_bin,
    **dict.fromkeys((".las", ".laz"), read_las),
    ".e57": read_e57,
    ".obj": read_obj,
    ".off": read_off,
    ".stl": read_stl,
}
_VIEWPOINTS = {".pcd": viewpoint_of_pcd, ".e57": viewpoint_of_e57, ".npz": viewpoints_of_npz}
SUFFIXES = tuple(_READERS)
