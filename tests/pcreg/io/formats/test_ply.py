"""Both byte orders of .ply, and the order in which files are written."""

import struct

import numpy as np

from pcreg.io.cloud import read_cloud, write_ply
from tests.pcreg.io.cloud_files import POINTS, ascii_ply, pcd


def test_ply_of_either_byte_order_with_other_elements_around_and_a_name_twice(tmp_path):
    head = "ply\nformat {} 1.0\ncomment a camera first\nelement camera 2\nproperty uchar id\n"
    head += "element vertex 3\n" + 2 * "property uchar red\n"
    head += "property float64 x\nproperty float y\nproperty int16 z\n"
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    points = np.array([[1.5, 2.5, -3], [4.5, 5.5, 6], [7.5, -8.5, 9]])
    for name, order in (("binary_little_endian", "<"), ("binary_big_endian", ">")):
        rows = np.zeros(
            3, dtype=[("red", "u1", 2), ("x", order + "f8"), ("y", order + "f4"), ("z", order + "i2")]
        )
        rows["x"], rows["y"], rows["z"] = points.T
        (tmp_path / "a.ply").write_bytes(
            head.format(name).encode() + b"\1\2" + rows.tobytes() + b"\3" + bytes(12)
        )
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, points)


def test_coloured_ply_holds_what_it_promises(tmp_path):
    colors = np.array([[255, 0, 0], [0, 128, 0], [1, 2, 3]], dtype=np.uint8)
    write_ply(tmp_path / "a.ply", POINTS, colors)
    head, body = (tmp_path / "a.ply").read_bytes().split(b"end_header\n")
    assert head.split()[-9:] == b"property uchar red property uchar green property uchar blue".split()
    assert struct.unpack("<dddBBB", body[:27]) == (*POINTS[0], 255, 0, 0)
    assert len(body) == 3 * 27
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, POINTS)


def test_coordinates_in_capitals(tmp_path):
    """Names in capitals are read from text and binary files, also after another field."""
    (tmp_path / "a.ply").write_bytes(ascii_ply(POINTS).replace(b"t x", b"t X").replace(b"t y", b"t Y"))
    for name, data in (("a", "ascii"), ("b", "binary")):
        (tmp_path / f"{name}.pcd").write_bytes(pcd(np.c_[np.ones(3), POINTS], data, "intensity X Y Z"))
    rows = np.array([*map(tuple, POINTS)], [(axis, "f8") for axis in "XYZ"])
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", points=rows)
    for name in ("a.ply", "a.pcd", "b.pcd", "a.npy", "a.npz"):
        np.testing.assert_allclose(read_cloud(tmp_path / name).points, POINTS, rtol=1e-6)
