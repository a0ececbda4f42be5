"""Meshes: .ply with lists, .obj, .off and .stl, as written here and by trimesh, and points on their faces."""

import struct

import numpy as np
import pytest
import trimesh

from pcreg.io.cloud import read_cloud
from pcreg.io.formats import meshes
from tests.pcreg.io.cloud_files import refusal

POINTS = np.array([[0.5, -1.25, 2.0], [3.0, 4.0, -5.5], [0.25, 0.0, 7.75]])
CUBE = trimesh.creation.box()


def head(kind: str, *elements: str) -> bytes:
    return "\n".join(["ply", f"format {kind} 1.0", *elements, "end_header", ""]).encode()


LISTED = ("element vertex 3", "property list uchar short seen", *(f"property float {a}" for a in "xyz"))
FACES = ("element face 2", "property uchar flag", "property list uchar int vertex_indices")
PLAIN = ("element vertex 3", *(f"property float {axis}" for axis in "xyz"))


@pytest.mark.parametrize(("kind", "order"), [("binary_little_endian", "<"), ("binary_big_endian", ">")])
def test_binary_ply_with_lists_in_the_vertices_and_before(tmp_path, kind, order):
    faces = struct.pack(f"{order}BB3i", 0, 3, 0, 1, 2) + struct.pack(f"{order}BB4i", 1, 4, 0, 1, 2, 0)
    listed = b"".join(
        struct.pack(f"{order}B{number}h3f", number, *range(number), *row) for number, row in enumerate(POINTS)
    )
    plain = POINTS.astype(f"{order}f4").tobytes()
    for content in (
        head(kind, *LISTED) + listed,
        head(kind, *FACES, *PLAIN) + faces + plain,
        head(kind, *FACES, *LISTED) + faces + listed,
        head(kind, *LISTED, *FACES) + listed + faces,
    ):
        (tmp_path / "a.ply").write_bytes(content)
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, POINTS)
        (tmp_path / "a.ply").write_bytes(content[: content.index(b"end_header") + 30])
        assert "truncated" in refusal(tmp_path / "a.ply")


def test_text_ply_with_lists_in_the_vertices_and_before(tmp_path):
    faces = b"0 3 0 1 2\n1 4 0 1 2 0\n"
    rows = enumerate(POINTS.tolist())
    listed = "".join(" ".join(map(str, [n, *range(n), *row])) + "\n" for n, row in rows).encode()
    (tmp_path / "a.ply").write_bytes(head("ascii", *FACES, *LISTED) + faces + listed)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, POINTS)


@pytest.mark.parametrize("kind", ["obj", "off", "stl", "stl_ascii", "ply"])
def test_a_cube_as_trimesh_writes_it(tmp_path, kind):
    path = tmp_path / f"a.{kind[:3]}"
    CUBE.export(path, file_type=kind)
    assert path.read_bytes().startswith(b"solid") is (kind == "stl_ascii")
    points = read_cloud(path).points
    assert sorted(map(tuple, points[:8])) == sorted(map(tuple, CUBE.vertices))
    on_face = np.isclose(np.abs(points), 0.5)  # 8 corners, then points on six equal faces
    assert on_face.any(axis=1).all()
    np.testing.assert_allclose(on_face[8:].sum(0), meshes.DENSE / 3, rtol=0.02)
    np.testing.assert_array_equal(read_cloud(path).points, points)


def test_faces_get_points_where_vertices_are_few(tmp_path, monkeypatch):
    sphere = trimesh.creation.icosphere(subdivisions=4)
    large = np.array([[-2, -2, 3], [2, -2, 3], [0, 2, 3]])  # 8 of 20.5 square metres
    trimesh.util.concatenate([sphere, trimesh.Trimesh(large, [[0, 1, 2]])]).export(tmp_path / "a.off")
    monkeypatch.setattr(meshes, "DENSE", 4000)
    points = read_cloud(tmp_path / "a.off").points
    added = points[len(sphere.vertices) + 3 :]
    assert len(added) == pytest.approx(4000 * 8 / 20.5, rel=0.1)
    assert np.mean(added[:, 2] > 2.9) > 0.95
    monkeypatch.setattr(meshes, "DENSE", 2000)
    assert len(read_cloud(tmp_path / "a.off").points) == len(sphere.vertices) + 3


def test_a_binary_stl_that_begins_with_solid(tmp_path):
    CUBE.export(tmp_path / "a.stl")
    (tmp_path / "a.stl").write_bytes(b"solid cube" + (tmp_path / "a.stl").read_bytes()[10:])
    assert sorted(map(tuple, read_cloud(tmp_path / "a.stl").points[:8])) == sorted(map(tuple, CUBE.vertices))


def test_an_obj_with_colours_normals_and_remarks(tmp_path):
    rows = "".join(f"v {x} {y} {z} 0.1 0.2 0.3\nvn 0 0 1\nvt 0 0\n# v 9 9 9\n" for x, y, z in POINTS)
    (tmp_path / "a.obj").write_text("mtllib a.mtl\no thing\n" + rows + "f 1//1 2//2 3//3\n")
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.obj").points[:3], POINTS)
    (tmp_path / "a.obj").write_text("o thing\nf 1 2 3\n")
    assert "no line `v x y z`" in refusal(tmp_path / "a.obj")


@pytest.mark.parametrize(
    "start", ["OFF\n3 1 0\n", "OFF 3 1 0\n", "OFF3 1 0\n", "# made\n\nCOFF\n# counts\n3 1 0\n"]
)
def test_the_beginnings_of_an_off(tmp_path, start):
    rows = "".join(f"{x} {y} {z} 1 0 0\n" for x, y, z in POINTS)
    (tmp_path / "a.off").write_text(start + rows + "3 0 1 2\n")
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.off").points[:3], POINTS)
