"""Arrays: .npy and .npz of NumPy, and bare rows of float32 (.bin) of KITTI and nuScenes.

A .bin has no header: KITTI writes x y z reflectance, nuScenes x y z intensity ring. The number of columns is
estimated from the values: with the right number, coordinates and intensities are in different columns, whose
distributions differ; with any other number, every column holds the same mixture.
"""

import math
import zipfile
from pathlib import Path

import numpy as np

from pcreg.io.formats.bounds import check_expansion
from pcreg.runtime.errors import InputError

COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's; others unpack without bounds
MAX_COLUMNS = 32  # an array with more columns, and with fewer rows than columns, looks transposed

# Estimate of the number of columns of a .bin
USUAL_COLUMNS = (4, 5)  # columns of KITTI and of nuScenes
COLUMN_COUNTS = range(3, 13)  # numbers of columns that are tried
SAMPLE_NUMBERS = 1 << 14
MIN_NUMBERS = 1 << 12  # no estimate with fewer values
MIN_DISTANCE = 0.2  # Kolmogorov-Smirnov distance; columns of the same mixture differ by less than 0.05
MIN_DISTANCE_RATIO = 0.9  # to the largest distance: multiples of the right number reach it, too


def read_npy(path: Path) -> np.ndarray:
    """Array of a .npy file, memory-mapped."""
    return np.lib.format.open_memmap(path, mode="r")  # np.load takes archives and pickles too


def read_npz(path: Path) -> np.ndarray:
    """Array `points`, `pcd` or `xyz` of an .npz file, or its only array besides `viewpoints`."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name != "viewpoints.npy"]
        found = [name for name in ("points", "pcd", "xyz") if name in names] or names
        if found == names and len(names) != 1:
            raise InputError(f"{path}: holds the arrays {names}; call the one with the points `points`")
        return _array(archive, found[0], path)


def viewpoints_of_npz(path: Path) -> np.ndarray | None:
    """Sensor positions (N, 3) float64 of the points: the array `viewpoints` of an .npz file, or None."""
    with zipfile.ZipFile(path) as archive:
        if "viewpoints.npy" not in archive.namelist():
            return None
        viewpoints = _array(archive, "viewpoints", path).astype(np.float64)
    if viewpoints.ndim != 2 or viewpoints.shape[1] != 3:
        raise InputError(
            f"{path}: holds viewpoints of shape {viewpoints.shape}; write rows x y z, one per point"
        )
    return viewpoints


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    """Array `name` of the archive at `path`."""
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type not in COMPRESSIONS:
        raise InputError(f"{path}: is not compressed as NumPy does it; write it with numpy.savez")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    if not (dtype.kind in "fiu" or dtype.names) or min(shape, default=0) < 0:
        raise ValueError(f"it holds values of type {dtype} in shape {shape}; store real numbers")
    count = math.prod(shape)
    check_expansion(path, count if dtype.names else shape[0] if shape else 0, count * dtype.itemsize)
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def read_bin(path: Path, columns: int | None = None) -> np.ndarray:
    """Rows (N, columns) float32, memory-mapped; by default 4 or 5 columns, by content.

    Raises InputError if the size is no whole number of rows, or if the content looks like neither 4 nor 5.
    """
    size = path.stat().st_size
    if columns is None:
        columns = USUAL_COLUMNS[0] if size % 4 else _columns_by_content(path)
    elif not 3 <= columns <= MAX_COLUMNS:
        raise InputError(f"{path}: rows of {columns} columns hold no points; say 3 to {MAX_COLUMNS}")
    if size % (4 * columns):
        raise InputError(
            f"{path}: {size} bytes are not a whole number of rows of {columns} float32; the file is "
            "truncated, or has another number of columns: say how many (--columns, columns= or data.columns=)"
        )
    return np.memmap(path, "<f4", "r").reshape(-1, columns)


def _columns_by_content(path: Path) -> int:
    """Number of columns, 4 or 5, and 4 if no estimate is possible; InputError for any other number."""
    numbers = np.memmap(path, "<f4", "r")[:SAMPLE_NUMBERS]
    likely = likely_columns(np.nan_to_num(numbers, nan=np.float32(1e38))) or USUAL_COLUMNS[0]
    if likely not in USUAL_COLUMNS:
        raise InputError(
            f"{path}: looks like rows of {likely} numbers, not 4 or 5; say how many: --columns, data.columns="
        )
    return likely


def likely_columns(numbers: np.ndarray) -> int | None:
    """Estimate the number of columns of the numbers (S,); None if that is not possible."""
    if len(numbers) < MIN_NUMBERS:
        return None
    edges = np.unique(np.quantile(numbers, np.linspace(0.05, 0.95, 19)))
    below = numbers[:, None] <= edges
    distances = {}  # the largest Kolmogorov-Smirnov distance between a column and all numbers
    for length in COLUMN_COUNTS:
        rows = below[: len(below) // length * length].reshape(-1, length, len(edges))
        share = rows.mean(0)
        distances[length] = np.abs(share - share.mean(0)).max()
    largest = max(distances.values())
    if largest < MIN_DISTANCE:
        return None
    return next(length for length in COLUMN_COUNTS if distances[length] >= MIN_DISTANCE_RATIO * largest)
