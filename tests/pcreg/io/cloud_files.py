"""Files of point clouds in every format, as other programs write them."""

import struct

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud, write_ply
from pcreg.runtime.errors import InputError

POINTS = np.array([[0.5, -1.25, 2.0], [3.0, 4.0, -5.5], [1e-3, 0.0, 7.75]])
TEXT = (".xyz", ".txt", ".csv", ".asc", ".pts")
MARKED = (".ply", ".pcd", *TEXT, ".npy", ".npz", ".bin", ".e57", ".obj", ".off")  # can hold what is no number
ALL = pytest.mark.parametrize("suffix", [*MARKED, ".las", ".laz", ".stl"])


def pcd(points: np.ndarray, data: str, fields: str = "x y z") -> bytes:
    columns = len(fields.split())
    header = (
        f"# .PCD v0.7\nVERSION 0.7\nFIELDS {fields}\nSIZE{' 4' * columns}\nTYPE{' F' * columns}\n"
        f"COUNT{' 1' * columns}\nWIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n"
        f"POINTS {len(points)}\nDATA {data}\n"
    )
    if data == "ascii":
        return (header + "".join(" ".join(map(str, row)) + "\n" for row in points)).encode()
    return header.encode() + points.astype("<f4").tobytes()


def ascii_ply(points: np.ndarray) -> bytes:
    header = f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n"
    header += "property float x\nproperty float y\nproperty float z\nend_header\n"
    return (header + "".join(f"{x} {y} {z}\n" for x, y, z in points)).encode()


def write(path, points: np.ndarray) -> None:
    """The points in the format that the suffix of `path` asks for."""
    points = np.asarray(points, dtype=np.float64)
    if path.suffix == ".ply":
        write_ply(path, points)
    elif path.suffix == ".pcd":
        path.write_bytes(pcd(points, "binary"))
    elif path.suffix in TEXT:
        count = {"header": str(len(points)), "comments": ""} if path.suffix == ".pts" else {}
        np.savetxt(path, points, **count)
    elif path.suffix == ".npy":
        np.save(path, points)
    elif path.suffix == ".npz":
        np.savez(path, points=points)
    elif path.suffix in (".las", ".laz"):
        write_las(path, points)
    elif path.suffix == ".e57":
        write_e57(path, points)
    elif path.suffix in (".obj", ".off"):
        counts = [] if path.suffix == ".obj" else ["OFF", f"{len(points)} 1 0"]
        word, face = ("v ", "f 1 1 1") if path.suffix == ".obj" else ("", "3 0 0 0")
        rows = (word + " ".join(map(repr, row)) for row in points.tolist())
        path.write_text("\n".join([*counts, *rows, face, ""]))
    elif path.suffix == ".stl":
        path.write_bytes(stl(points))
    else:
        path.write_bytes(np.c_[points, np.ones(len(points))].astype("<f4").tobytes())


def stl(points: np.ndarray) -> bytes:
    """Binary triangles without area, each of one point as its three corners."""
    kind = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
    rows = np.zeros(len(points), dtype=kind)
    rows["corners"] = points[:, None]
    return bytes(80) + struct.pack("<I", len(points)) + rows.tobytes()


def write_las(path, points: np.ndarray) -> None:
    """In steps of 0.1 mm from the first point, compressed if the suffix of `path` says so."""
    import laspy

    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = np.full(3, 1e-4), np.floor(points[:1].sum(0))
    las = laspy.LasData(header)
    las.xyz = points
    las.write(str(path))


def write_e57(path, points: np.ndarray, rotation=(1.0, 0.0, 0.0, 0.0)) -> None:
    """As scanners do: float32 about the scanner, its place in a pose, and marks on what it did not hit."""
    import pye57

    place = np.floor(points[0])
    hit = np.isfinite(points).all(1)
    local = np.where(hit[:, None], points - place, 0)
    columns = {f"cartesian{axis}": local[:, n].copy() for n, axis in enumerate("XYZ")}
    columns["cartesianInvalidState"] = np.where(hit, 0, 2).astype(np.int8)
    file = pye57.E57(str(path), mode="w")
    file.write_scan_raw(columns, rotation=np.array(rotation), translation=place)
    file.close()


def write_by_open3d(path, points: np.ndarray, **options: bool) -> None:
    import open3d

    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    open3d.io.write_point_cloud(str(path), cloud, **options)


def refusal(path, **settings: int) -> str:
    """The sentence about a file, without its path, in which pytest puts the name of the test."""
    with pytest.raises(InputError) as caught:
        read_cloud(path, **settings)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message.replace(str(path), "")
