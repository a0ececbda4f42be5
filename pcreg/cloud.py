"""Point clouds on disk: read them, drop rows that are no points, write them.

Coordinates are read as float64 and stay so: UTM coordinates have no digits to lose.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pcreg.errors import InputError
from pcreg.files import replacing


@dataclass(frozen=True)
class Cloud:
    """Finite points (N, 3) float64, metres, in the order of the file."""

    points: np.ndarray
    dropped: int  # rows of the file left out because a coordinate was NaN or infinite


def read_cloud(path: str | Path) -> Cloud:
    """The cloud in a .ply, .pcd, .xyz, .npy, .npz or KITTI .bin file.

    An .npz holds its points under `points`, `pcd` or `xyz`, or is a single array. Columns after
    the third (intensity, colour, normals) are ignored. Raises InputError for a file that is
    missing, of another format, empty, truncated or damaged.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown point cloud format; use one of {' '.join(_READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; write it again")
    try:
        rows = reader(path)
    except InputError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise InputError(
            f"{path}: cannot be read as {path.suffix} ({_first_line(error)}); "
            "it may be truncated or damaged: write it again"
        ) from error
    if rows.ndim != 2 or rows.shape[1] < 3:
        raise InputError(f"{path}: holds an array of shape {rows.shape}; points are rows of at least x y z")
    if rows.dtype.kind not in "fiu":
        raise InputError(f"{path}: holds values of type {rows.dtype}; store coordinates as real numbers")
    points = np.ascontiguousarray(rows[:, :3], dtype=np.float64)
    finite = np.isfinite(points).all(1)
    return Cloud(points[finite], dropped=int((~finite).sum()))


def write_ply(path: str | Path, points: np.ndarray, colors: np.ndarray | None = None) -> None:
    """Write points (N, 3), and colours (N, 3) uint8 if given, as binary float64 .ply, atomically."""
    fields = [("x", "<f8"), ("y", "<f8"), ("z", "<f8")]
    if colors is not None:
        fields += [("red", "u1"), ("green", "u1"), ("blue", "u1")]
    rows = np.empty(len(points), dtype=fields)
    for column, name in enumerate("xyz"):
        rows[name] = points[:, column]
    for column, (name, _) in enumerate(fields[3:]):
        rows[name] = colors[:, column]
    kinds = {"<f8": "double", "u1": "uchar"}
    properties = "".join(f"property {kinds[kind]} {name}\n" for name, kind in fields)
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n{properties}end_header\n"
    with replacing(path) as temporary:
        temporary.write_bytes(header.encode() + rows.tobytes())


def _read_ply(path: Path) -> np.ndarray:
    import trimesh

    declared = _declared(path, b"element vertex", b"end_header")
    if declared == 0:
        return np.empty((0, 3))
    vertices = np.asarray(trimesh.load(path, process=False).vertices)
    return _complete(path, vertices, declared)


def _read_pcd(path: Path) -> np.ndarray:
    declared = _declared(path, b"POINTS", b"DATA")
    if declared == 0:
        return np.empty((0, 3))
    header, is_text, text = path.read_bytes().partition(b"DATA ascii")
    if is_text:  # Open3D fills a text file that ends early with repeated rows
        rows = np.loadtxt(text.decode().splitlines(), ndmin=2)
        fields = header.decode().split("FIELDS", 1)[1].splitlines()[0].split()
        return _complete(path, rows[:, [fields.index(axis) for axis in "xyz"]], declared)
    import open3d

    with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):
        cloud = open3d.io.read_point_cloud(str(path), format="pcd", remove_nan_points=False)
    return _complete(path, np.asarray(cloud.points), declared)


def _read_xyz(path: Path) -> np.ndarray:
    return np.loadtxt(path, ndmin=2, dtype=np.float64, usecols=(0, 1, 2))


def _read_npy(path: Path) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as arrays:
        for name in ("points", "pcd", "xyz"):
            if name in arrays:
                return arrays[name]
        if len(arrays.files) == 1:
            return arrays[arrays.files[0]]
        raise InputError(f"{path}: holds the arrays {arrays.files}; call the one with the points `points`")


def _read_bin(path: Path) -> np.ndarray:
    row_bytes = 4 * np.dtype("<f4").itemsize  # x forward, y left, z up, reflectance
    if path.stat().st_size % row_bytes:
        raise InputError(
            f"{path}: {path.stat().st_size} bytes are no whole number of {row_bytes}-byte KITTI points; "
            "the file is truncated: copy it again"
        )
    return np.fromfile(path, dtype="<f4").reshape(-1, 4)


_READERS: dict[str, Callable[[Path], np.ndarray]] = {
    ".ply": _read_ply,
    ".pcd": _read_pcd,
    ".xyz": _read_xyz,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".bin": _read_bin,
}
SUFFIXES = tuple(_READERS)  # of the files that read_cloud knows


def _declared(path: Path, key: bytes, last: bytes) -> int:
    """The number after `key` in a text header that ends with the line starting with `last`."""
    count = None
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(1024), b""):
            if line.startswith(key):
                count = int(line.split()[-1])
            if line.startswith(last):
                break
        else:
            raise ValueError(f"no {last.decode()} line")
    if count is None:
        raise ValueError(f"no {key.decode()} line in its header")
    return count


def _complete(path: Path, rows: np.ndarray, declared: int) -> np.ndarray:
    if len(rows) != declared:
        raise InputError(
            f"{path}: its header promises {declared} points and {len(rows)} can be read; "
            "the file is truncated or damaged: write it again"
        )
    return rows


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
