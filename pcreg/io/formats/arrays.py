"""Arrays of NumPy: .npy and .npz."""

import io
import math
import zipfile
from pathlib import Path

import numpy as np

from pcreg.io.formats.bounds import check_expansion, check_size
from pcreg.runtime.errors import InputError

MAX_HEADER_BYTES = 1 << 14  # NumPy refuses longer ones
CHUNK_BYTES = 1 << 17  # unpacked at a time
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's; others unpack without bounds


def read_npy(path: Path) -> np.ndarray:
    """Array of a .npy file, left on the disk."""
    return np.lib.format.open_memmap(path, mode="r")  # np.load takes archives and pickles too


def read_npz(path: Path) -> np.ndarray:
    """Array `points`, `pcd` or `xyz` of a .npz file, or its only one beside `viewpoints`."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name != "viewpoints.npy"]
        found = [name for name in ("points", "pcd", "xyz") if name in names] or names
        if found == names and len(names) != 1:
            raise InputError(f"{path}: holds the arrays {names}; call the one with the points `points`")
        return _array(archive, found[0], path)


def viewpoints_of_npz(path: Path) -> np.ndarray | None:
    """Array `viewpoints` (N, 3) float64 of a .npz file, from where each point was seen, or None."""
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
    """Array of this name in the archive at `path`."""
    if archive.getinfo(f"{name}.npy").compress_type not in COMPRESSIONS:
        raise InputError(f"{path}: is not compressed as NumPy does it; write it with numpy.savez")
    with archive.open(f"{name}.npy") as member:
        head = member.read(MAX_HEADER_BYTES)
        shape, order, dtype, start = _layout(head)
        size = math.prod(shape) * dtype.itemsize
        check_expansion(path, shape[0] if shape else 0, start + size)
        content = bytearray(head)
        while piece := member.read(min(CHUNK_BYTES, max(start + size - len(content), 0))):
            content += piece
    check_size(path, size, len(content) - start)
    return np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape, order=order)


def _layout(head: bytes) -> tuple[tuple[int, ...], str, np.dtype, int]:
    """Shape, order and type of the array of a .npy file by its first bytes, and where the numbers begin."""
    file = io.BytesIO(head)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    if dtype.kind not in "fiu" or min(shape, default=0) < 0:
        raise ValueError(f"it holds values of type {dtype} in shape {shape}; store real numbers")
    return shape, "F" if fortran_order else "C", dtype, file.tell()
