"""Small files, by name, whose header promises far more than they hold, or that unpack to far more."""

import io
import math
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.pcreg.io.cloud_files import write

TERA = 10**12


def npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def npz(shape: tuple[int, ...], there: int = 72, kind: int = zipfile.ZIP_DEFLATED) -> Callable[[Path], None]:
    """An .npz of an array whose header promises a shape, with only `there` bytes of zeros."""

    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", kind) as archive, archive.open("points.npy", "w") as member:
            member.write(npy_header(shape))
            for start in range(0, there, 1 << 20):
                member.write(bytes(min(1 << 20, there - start)))

    return make


def pcd(points: int, packed: bytes, promised: int | None = None) -> Callable[[Path], None]:
    """A compressed .pcd with this number of points in its header, and these bytes after the header."""
    header = f"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS {points}\nDATA binary_compressed\n"
    unpacked = min(12 * points if promised is None else promised, 2**32 - 1)
    return lambda path: path.write_bytes(header.encode() + struct.pack("<II", len(packed), unpacked) + packed)


def lzf_zeros(copies: int) -> bytes:
    """LZF: one zero byte, then that many copies of 264 bytes."""
    return b"\0\0" + b"\xe0\xff\0" * copies


def laz(points: np.ndarray, change: Callable[[bytearray], None] = lambda content: None) -> Callable:
    def make(path: Path) -> None:
        write(path, points)
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return make


def counted(points: int) -> Callable[[bytearray], None]:
    """A .las of version 1.4 with another number of points in its header."""
    return lambda content: struct.pack_into("<Q", content, 247, points)


def chunked(chunks: int) -> Callable[[bytearray], None]:
    """A .laz with another number of chunks in its table."""

    def change(content: bytearray) -> None:
        (start,) = struct.unpack_from("<I", content, 96)
        (table,) = struct.unpack_from("<q", content, start)
        struct.pack_into("<I", content, table + 4, chunks)

    return change


def e57(records: int) -> Callable[[Path], None]:
    """A scan of 9 points that promises another number, in pages with sums that are right."""

    def make(path: Path) -> None:
        write(path, np.arange(27.0).reshape(9, 3))
        content = bytearray(path.read_bytes())
        logical = b"".join(content[at : at + 1020] for at in range(0, len(content), 1024))
        longer = re.sub(rb'recordCount="9"', b'recordCount="%d"' % records, logical)
        growth = len(longer) - len(logical)
        (xml_bytes,) = struct.unpack_from("<Q", longer, 32)
        tail = longer.rindex(b"</e57Root>") + len(b"</e57Root>")
        longer = bytearray(longer[:tail].ljust(math.ceil(tail / 1020) * 1020, b"\0"))
        struct.pack_into("<Q", longer, 32, xml_bytes + growth)
        struct.pack_into("<Q", longer, 16, len(longer) // 1020 * 1024)
        pages = (bytes(longer[at : at + 1020]) for at in range(0, len(longer), 1020))
        path.write_bytes(b"".join(page + struct.pack(">I", crc32c(page)) for page in pages))

    return make


def crc32c(content: bytes) -> int:
    """Castagnoli's checksum, computed bit by bit."""
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def ply(kind: str, count: int, body: bytes, properties: str = "") -> Callable[[Path], None]:
    header = f"ply\nformat {kind} 1.0\nelement vertex {count}\n{properties}"
    header += "property float x\nproperty float y\nproperty float z\nend_header\n"
    return lambda path: path.write_bytes(header.encode() + body)


FEW = np.random.default_rng(0).normal(scale=5, size=(4000, 3))
LIST = "property list uint double spectrum\n"
BOMBS: dict[str, Callable[[Path], None]] = {
    "repeats.npz": npz((1_000_000, 3), 24_000_000),
    "more_repeats.npz": npz((5_000_000, 3), 120_000_000),
    "promise.npz": npz((TERA, 3)),
    "smaller_promise.npz": npz((10_000_000, 3)),
    "little_arrives.npz": npz((300_000, 3)),
    "wide.npz": npz((3, TERA)),
    "empty_rows.npz": npz((TERA, 0)),
    "bzip2.npz": npz((300_000, 3), 7_200_000, zipfile.ZIP_BZIP2),
    "promise.npy": lambda path: path.write_bytes(npy_header((TERA, 3)) + bytes(72)),
    "promise.pcd": pcd(300_000_000, b"\0\0"),
    "little_arrives.pcd": pcd(400_000, lzf_zeros(10)),
    "too_much_arrives.pcd": pcd(100_000, lzf_zeros(60_000)),
    "negative.pcd": pcd(-1, lzf_zeros(10), 0),
    "promise.laz": laz(FEW, counted(TERA)),
    "little_arrives.laz": laz(FEW, counted(600_000)),
    "chunks.laz": laz(FEW, chunked(2**32 - 1)),
    "repeats.laz": laz(np.zeros((1_500_000, 3))),
    "promise.e57": e57(TERA),
    "little_arrives.e57": e57(600_000),
    "promise.ply": ply("ascii", TERA, b"0 0 0\n"),
    "list.ply": ply("binary_little_endian", 9, struct.pack("<I", 2**32 - 1) * 90, LIST),
    "promise.pts": lambda path: path.write_text(f"{TERA}\n0 0 0\n"),
    "promise.off": lambda path: path.write_text(f"OFF\n{TERA} 0 0\n0 0 0\n"),
    "promise.stl": lambda path: path.write_bytes(bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50)),
}
