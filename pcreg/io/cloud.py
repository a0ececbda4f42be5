"""Point clouds on disk: read them, drop rows that are no points, write them.

Coordinates are read as float64 and stay so: UTM coordinates have no digits to lose.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import box
from pcreg.io.formats.arrays import read_npy, read_npz, viewpoints_of_npz
from pcreg.io.formats.bin import read_bin
from pcreg.io.formats.e57 import read_e57, viewpoint_of_e57
from pcreg.io.formats.las import read_las
from pcreg.io.formats.obj import read_obj
from pcreg.io.formats.off import read_off
from pcreg.io.formats.pcd import read_pcd, viewpoint_of_pcd
from pcreg.io.formats.ply import read_ply
from pcreg.io.formats.stl import read_stl
from pcreg.io.formats.text import read_pts, read_xyz
from pcreg.runtime.cached_property import cached_property
from pcreg.runtime.errors import InputError, first_line
from pcreg.runtime.files import replacing

MAX_COLUMNS = 32  # an array with more columns than that and than rows is transposed


@dataclass(frozen=True)
class Cloud:
    """Finite points (N, 3) float64, metres, in the order of the file."""

    points: np.ndarray
    dropped: int = 0  # rows of the file left out: those that are not finite, and those in `notes`
    notes: tuple[str, ...] = ()  # a sentence each: finite rows that were left out, a doubtful unit
    # float64, metres, where the file says its sensor stood: (3,), or (N, 3) from where each point was seen
    viewpoint: np.ndarray | None = None
    rows: np.ndarray | None = None  # (N,) int64, ascending, which rows of the file these are; None: all

    @cached_property
    def box(self) -> np.ndarray:
        """The lower and upper corner (2, 3) of the points; zeros without points."""
        return box(self.points) if len(self.points) else np.zeros((2, 3))

    def viewpoints_of_points(self, viewpoints: np.ndarray, name: str) -> np.ndarray:
        """Of viewpoints (M, 3) for the M rows of the file those of the points (N, 3).

        Raises InputError, by its name, if there are more or fewer than rows, or if one of a point is not
        finite.
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

    def select(self, kept: np.ndarray, notes: tuple[str, ...] = ()) -> "Cloud":
        """The cloud of the points in the mask `kept` (N,), with further notes on what was left out."""
        rows = np.flatnonzero(kept) if self.rows is None else self.rows[kept]
        viewpoint = self.viewpoint
        if viewpoint is not None and viewpoint.ndim == 2:
            viewpoint = viewpoint[kept]
        dropped, notes = self.dropped + len(kept) - len(rows), (*self.notes, *notes)
        return replace(
            self, points=self.points[kept], rows=rows, dropped=dropped, notes=notes, viewpoint=viewpoint
        )


def read_cloud(path: str | Path, columns: int | None = None) -> Cloud:
    """The cloud in a file whose name ends in one of SUFFIXES; `~` stands for the home folder.

    An .npz holds its points under `points`, `pcd` or `xyz`, or is a single array. Text (.xyz .txt .csv .asc
    .pts) has blanks, commas or semicolons between its numbers, and may name its columns in a first line.
    Columns after the third (intensity, colour, normals) are ignored, and of meshes (.ply .obj .off .stl) all
    but the vertices. A .bin has rows of `columns` float32, by default 4 as KITTI's or 5 as those of nuScenes,
    whichever its content looks like. The VIEWPOINT of a .pcd, and the pose of an .e57 that is a single scan,
    say where the sensor stood; fields vp_x, vp_y and vp_z of a .pcd (PCL's PointWithViewpoint), and an array
    `viewpoints` (N, 3) of an .npz, from where each point was seen. Raises InputError for a file that is
    missing, of another format, empty, truncated or damaged, and for .las, .laz and .e57 where their packages
    are not installed. Memory grows with the content of the file, whatever its header promises, within the
    bounds of pcreg.io.size_checks.
    """
    path = expanded(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown point cloud format; use one of {' '.join(_READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; write it again")
    if reader is read_bin:
        reader = partial(read_bin, columns=columns)
    try:
        # A damaged file makes libraries warn about its numbers; what is not finite is dropped below.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = reader(path)
            viewpoint_of = _VIEWPOINTS.get(path.suffix.lower())
            viewpoint = viewpoint_of(path) if viewpoint_of else None
    except InputError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise InputError(
            f"{path}: cannot be read as {path.suffix} ({first_line(error)}); "
            "it may be truncated or damaged: write it again"
        ) from error
    cloud = cloud_of(rows, str(path))
    if viewpoint is not None and viewpoint.ndim == 2:
        viewpoint = cloud.viewpoints_of_points(viewpoint, str(path))
    return replace(cloud, viewpoint=viewpoint)


def expanded(path: str | Path) -> Path:
    """The path with `~` as the home folder; as it is if there is none of that name."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def cloud_of(rows: np.ndarray, name: str) -> Cloud:
    """The cloud of rows x y z and perhaps more (N, 3 to 32); InputError, by its name, for other arrays."""
    if rows.ndim != 2 or rows.shape[1] < 3:
        raise InputError(f"{name}: holds an array of shape {rows.shape}; points are rows of at least x y z")
    if rows.shape[1] > max(len(rows), MAX_COLUMNS):
        raise InputError(
            f"{name}: holds an array of shape {rows.shape}, which looks transposed; points are rows x y z: "
            "transpose it"
        )
    if rows.dtype.kind not in "fiu":
        raise InputError(f"{name}: holds values of type {rows.dtype}; store coordinates as real numbers")
    with np.errstate(invalid="ignore"):  # a signalling NaN
        points = np.ascontiguousarray(rows if rows.shape[1] == 3 else rows[:, :3], dtype=np.float64)
    if points.base is not None or not points.flags.writeable:  # a view of the file, or of more than it
        points = points.copy()
    if np.isfinite(points).all():
        return Cloud(points)
    return Cloud(points).select(np.isfinite(points).all(1))


def write_ply(path: str | Path, points: np.ndarray, colors: np.ndarray | None = None) -> None:
    """Write points (N, 3), and colours (N, 3) or (3,) uint8 if given, as binary float64 .ply, atomically."""
    write_ply_parts(path, len(points), [(points, colors)], colored=colors is not None)


def write_ply_parts(
    path: str | Path, count: int, parts: Iterable[tuple[np.ndarray, np.ndarray | None]], *, colored: bool
) -> None:
    """As `write_ply`, of a cloud of `count` points in parts, which need not fit into memory together."""
    fields = [("x", "<f8"), ("y", "<f8"), ("z", "<f8")]
    if colored:
        fields += [("red", "u1"), ("green", "u1"), ("blue", "u1")]
    kinds = {"<f8": "double", "u1": "uchar"}
    properties = "".join(f"property {kinds[kind]} {name}\n" for name, kind in fields)
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {count}\n{properties}end_header\n"
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(header.encode())
        for points, colors in parts:
            rows = np.empty(len(points), dtype=fields)
            for column, name in enumerate("xyz"):
                rows[name] = points[:, column]
            for column, (name, _) in enumerate(fields[3:]):
                rows[name] = colors[..., column]
            file.write(rows)


_READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".ply": read_ply,
    ".pcd": read_pcd,
    ".xyz": read_xyz,
    ".txt": read_xyz,
    ".csv": read_xyz,
    ".asc": read_xyz,
    ".pts": read_pts,
    ".npy": read_npy,
    ".npz": read_npz,
    ".bin": read_bin,
    ".las": read_las,
    ".laz": read_las,
    ".e57": read_e57,
    ".obj": read_obj,
    ".off": read_off,
    ".stl": read_stl,
}
# Of the formats that state one
_VIEWPOINTS = {".pcd": viewpoint_of_pcd, ".e57": viewpoint_of_e57, ".npz": viewpoints_of_npz}
SUFFIXES = tuple(_READERS)  # of the files that read_cloud knows
