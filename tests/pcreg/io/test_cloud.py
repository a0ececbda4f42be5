"""Point cloud files read and written: all formats side by side, as each test asks the same of several."""

import struct
import sys
import tracemalloc

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud, write_ply
from pcreg.runtime.errors import InputError

POINTS = np.array([[0.5, -1.25, 2.0], [3.0, 4.0, -5.5], [1e-3, 0.0, 7.75]])


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
    """Binary triangles, each of a point and the next two, so that corners come more than once."""
    count = len(points) - 2 if len(points) > 2 else min(len(points), 1)
    rows = np.zeros(count, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    for corner in range(3 if count else 0):
        rows["corners"][:, corner] = points[np.minimum(np.arange(count) + corner, len(points) - 1)]
    return bytes(80) + struct.pack("<I", count) + rows.tobytes()


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


TEXT = (".xyz", ".txt", ".csv", ".asc", ".pts")
MARKED = (".ply", ".pcd", *TEXT, ".npy", ".npz", ".bin", ".e57", ".obj", ".off")  # can hold what is no number
ALL = pytest.mark.parametrize("suffix", [*MARKED, ".las", ".laz", ".stl"])


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        read_cloud(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@ALL
def test_every_format_gives_the_points_in_order(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, POINTS)
    cloud = read_cloud(path)
    assert cloud.points.dtype == np.float64
    assert cloud.dropped == 0
    np.testing.assert_allclose(cloud.points, POINTS, rtol=1e-7)


@pytest.mark.parametrize("suffix", MARKED)
def test_rows_that_are_no_points_are_dropped_and_counted(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.insert(POINTS, [1, 1, 3], [[np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf]], axis=0))
    cloud = read_cloud(path)
    assert cloud.dropped == 3
    np.testing.assert_allclose(cloud.points, POINTS, rtol=1e-7)


@ALL
def test_an_upper_case_suffix_is_the_same_format(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, POINTS)
    shouted = path.rename(tmp_path / f"CLOUD{suffix.upper()}")
    assert len(read_cloud(shouted).points) == 3


@pytest.mark.parametrize("suffix", [".ply", *TEXT, ".npy", ".npz", ".las", ".laz", ".e57", ".obj", ".off"])
def test_map_coordinates_keep_their_millimetres(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    far = POINTS + np.array([500_000.123, 4_000_000.456, 100.789])
    write(path, far)
    atol = {".las": 1e-4, ".laz": 1e-4, ".e57": 1e-6}.get(suffix, 1e-8)
    np.testing.assert_allclose(read_cloud(path).points, far, rtol=0, atol=atol)


def test_text_variants_of_ply_and_pcd(tmp_path):
    (tmp_path / "a.ply").write_bytes(ascii_ply(POINTS))
    (tmp_path / "a.pcd").write_bytes(pcd(POINTS, "ascii"))
    (tmp_path / "b.pcd").write_bytes(pcd(np.c_[np.ones(3), POINTS], "ascii", "intensity x y z"))
    for name in ("a.ply", "a.pcd", "b.pcd"):
        np.testing.assert_allclose(read_cloud(tmp_path / name).points, POINTS, rtol=1e-6)


def test_a_compressed_pcd_as_another_program_writes_it(tmp_path):
    """With floors and walls, whose equal coordinates become copies of earlier bytes."""
    import open3d

    points = np.random.default_rng(0).uniform(-4, 4, (3000, 3))
    points[:600, 2], points[600:900, 0] = -1.5, 4.0
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    open3d.io.write_point_cloud(str(tmp_path / "a.pcd"), cloud, compressed=True)
    assert b"DATA binary_compressed" in (tmp_path / "a.pcd").read_bytes()
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.pcd").points, points.astype(np.float32))


def test_ply_of_either_byte_order_with_other_elements_around(tmp_path):
    head = "ply\nformat {} 1.0\ncomment a camera first\nelement camera 2\nproperty uchar id\n"
    head += "element vertex 3\nproperty uchar red\nproperty double x\nproperty float y\nproperty short z\n"
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    points = np.array([[1.5, 2.5, -3], [4.5, 5.5, 6], [7.5, -8.5, 9]])
    for name, order in (("binary_little_endian", "<"), ("binary_big_endian", ">")):
        rows = np.zeros(
            3, dtype=[("red", "u1"), ("x", order + "f8"), ("y", order + "f4"), ("z", order + "i2")]
        )
        rows["x"], rows["y"], rows["z"] = points.T
        (tmp_path / "a.ply").write_bytes(
            head.format(name).encode() + b"\1\2" + rows.tobytes() + b"\3" + bytes(12)
        )
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, points)


def test_pts_with_and_without_a_count(tmp_path):
    for head in ("", "3\n"):
        (tmp_path / "a.pts").write_text(head + "".join(f"{x} {y} {z} 7 255 0 0\n" for x, y, z in POINTS))
        np.testing.assert_array_equal(read_cloud(tmp_path / "a.pts").points, POINTS)


@pytest.mark.parametrize("between", [" ", "\t", ",", ", ", ";", " ; "])
@pytest.mark.parametrize(
    "head",
    ["", "x y z i\n", "//X Y Z I\n", "# made by hand, x;y;z\n\n", "X,Y,Z,Intensity\n", '"x";"y";"z"\n'],
)
@pytest.mark.parametrize("suffix", [".xyz", ".pts"])
def test_text_with_separators_and_headings(tmp_path, suffix, head, between):
    rows = "".join(between.join(map(str, (*row, 7))) + "\n" for row in POINTS)
    (tmp_path / f"a{suffix}").write_text(head + rows)
    np.testing.assert_array_equal(read_cloud(tmp_path / f"a{suffix}").points, POINTS)


def test_text_whose_heading_names_the_columns_in_another_order_or_not_at_all(tmp_path):
    (tmp_path / "a.xyz").write_text("id z,y,x\n" + "".join(f"9 {z} {y} {x}\n" for x, y, z in POINTS))
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.xyz").points, POINTS)
    (tmp_path / "a.xyz").write_text("east north up\n1 2 3\n")
    assert "names no column x" in refusal(tmp_path / "a.xyz")


def test_pts_with_a_heading_and_a_count(tmp_path):
    (tmp_path / "a.pts").write_text("//X Y Z\n3\n" + "".join(f"{x},{y},{z}\n" for x, y, z in POINTS))
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.pts").points, POINTS)


def test_text_takes_little_memory(tmp_path):
    path = tmp_path / "a.xyz"
    path.write_text("x,y,z\n" + "0,0,0\n" * 200_000)
    tracemalloc.start()
    read_cloud(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * path.stat().st_size
    path.write_text("0 " * 500_000)  # a single row
    assert "line of more than" in refusal(path)


def test_an_e57_scan_is_moved_by_its_pose(tmp_path):
    half = np.sqrt(0.5)  # a quarter turn about z: x to y, y to -x
    write_e57(tmp_path / "a.e57", POINTS, rotation=(half, 0.0, 0.0, half))
    place = np.floor(POINTS[0])
    turned = (POINTS - place) @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + place
    np.testing.assert_allclose(read_cloud(tmp_path / "a.e57").points, turned, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("", None),
        ("VIEWPOINT 0 0 0 1 0 0 0\n", None),  # what every tool writes that does not know
        ("VIEWPOINT 1.5 -2 3 1 0 0 0\n", [1.5, -2, 3]),
        ("VIEWPOINT 0 0 0 0 1 0 0\n", [0, 0, 0]),  # turned, so somebody knew
    ],
)
def test_a_pcd_says_where_its_sensor_stood(tmp_path, line, place):
    header = f"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n{line}POINTS 1\nDATA ascii\n1 2 3\n"
    (tmp_path / "a.pcd").write_text(header)
    found = read_cloud(tmp_path / "a.pcd").viewpoint
    assert found is None if place is None else found.tolist() == place


@pytest.mark.parametrize("words", ["1 2 3", "1 2 3 1 0 0 nan", "a b c d e f g"])
def test_a_damaged_viewpoint_is_refused(tmp_path, words):
    header = f"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nVIEWPOINT {words}\nPOINTS 1\nDATA ascii\n1 2 3\n"
    (tmp_path / "a.pcd").write_text(header)
    refusal(tmp_path / "a.pcd")


def test_the_pose_of_the_only_scan_of_an_e57_says_where_the_scanner_stood(tmp_path):
    import pye57

    write_e57(tmp_path / "posed.e57", POINTS)
    assert read_cloud(tmp_path / "posed.e57").viewpoint.tolist() == np.floor(POINTS[0]).tolist()
    columns = {f"cartesian{axis}": POINTS[:, n].copy() for n, axis in enumerate("XYZ")}
    for name, poses in (("unmoved", [np.zeros(3)]), ("two", [np.ones(3), np.ones(3)])):
        file = pye57.E57(str(tmp_path / f"{name}.e57"), mode="w")
        for place in poses:
            file.write_scan_raw(columns, translation=place)
        file.close()
        assert read_cloud(tmp_path / f"{name}.e57").viewpoint is None


def test_rows_count_what_was_left_out(tmp_path):
    np.save(tmp_path / "a.npy", np.insert(POINTS, [0, 2], np.nan, axis=0))
    assert read_cloud(tmp_path / "a.npy").rows.tolist() == [1, 2, 4]
    np.save(tmp_path / "a.npy", POINTS)
    assert read_cloud(tmp_path / "a.npy").rows is None


@pytest.mark.parametrize(("suffix", "package"), [(".las", "laspy"), (".laz", "lazrs"), (".e57", "pye57")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, suffix, package):
    write(tmp_path / f"a{suffix}", POINTS)
    monkeypatch.setitem(sys.modules, package, None)
    assert "pip install 'pcreg[" in refusal(tmp_path / f"a{suffix}")


def test_further_columns_are_ignored(tmp_path):
    np.save(tmp_path / "a.npy", np.c_[POINTS, np.full(3, np.nan)])
    cloud = read_cloud(tmp_path / "a.npy")
    np.testing.assert_array_equal(cloud.points, POINTS)
    assert cloud.dropped == 0


@pytest.mark.parametrize("key", ["points", "pcd", "xyz", "anything"])
def test_names_of_arrays_in_an_npz(tmp_path, key):
    extra = {} if key == "anything" else {"color": np.zeros((3, 3))}
    np.savez(tmp_path / "a.npz", **{key: POINTS}, **extra)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.npz").points, POINTS)


def test_an_npz_with_several_unknown_arrays_is_refused_by_their_names(tmp_path):
    np.savez(tmp_path / "a.npz", first=POINTS, second=POINTS)
    assert "'first', 'second'" in refusal(tmp_path / "a.npz")


@ALL
def test_missing_file(tmp_path, suffix):
    assert "no such file" in refusal(tmp_path / f"nowhere{suffix}")


@ALL
def test_empty_file(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    path.touch()
    assert "empty" in refusal(path)


@ALL
def test_truncated_file(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.random.default_rng(0).normal(size=(400, 3)))
    whole = path.read_bytes()
    cut = len(whole) * 2 // 3
    if suffix in (*TEXT, ".obj", ".off"):  # cut inside a row's first number
        cut = whole.rindex(b"\n", 0, cut) + 4
    path.write_bytes(whole[: cut - cut % 16 + 5 if suffix == ".bin" else cut])
    assert "truncated" in refusal(path)


@pytest.mark.parametrize("text", [ascii_ply(POINTS), pcd(POINTS, "ascii")])
def test_truncated_text(tmp_path, text):
    path = tmp_path / ("a.ply" if text.startswith(b"ply") else "a.pcd")
    path.write_bytes(text[: text.rindex(b"\n", 0, -1) + 1])
    assert "truncated" in refusal(path)


@pytest.mark.parametrize("suffix", [s for s in (*MARKED, ".las", ".laz") if s != ".bin"])
@pytest.mark.parametrize("content", [b"no point cloud\n", bytes(range(256)) * 4], ids=["text", "bytes"])
def test_unreadable_file(tmp_path, suffix, content):
    path = tmp_path / f"cloud{suffix}"
    path.write_bytes(content)
    refusal(path)


def test_a_folder_is_no_cloud(tmp_path):
    (tmp_path / "folder.ply").mkdir()
    refusal(tmp_path / "folder.ply")


@pytest.mark.parametrize("name", ["cloud.glb", "cloud", "cloud.doc", "cloud.ply.gz"])
def test_wrong_extension_names_the_valid_ones(tmp_path, name):
    (tmp_path / name).write_bytes(b"1 2 3\n")
    message = refusal(tmp_path / name)
    for suffix in (*MARKED, ".las", ".laz"):
        assert suffix in message


@pytest.mark.parametrize("shape", [(5,), (5, 2), (2, 5, 3), ()])
def test_arrays_that_are_no_rows_of_points(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    assert str(shape) in refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("write_array", [np.save, lambda path, rows: np.savez(path, points=rows)])
@pytest.mark.parametrize("shape", [(3, 1000), (4, 1000)])
def test_a_transposed_array_is_called_so(tmp_path, write_array, shape):
    path = tmp_path / ("a.npy" if write_array is np.save else "a.npz")
    write_array(path, np.zeros(shape))
    assert "transposed" in refusal(path)
    write_array(path, np.zeros(shape).T)
    assert len(read_cloud(path).points) == 1000


@pytest.mark.parametrize("rows", [np.array([["a", "b", "c"]]), np.ones((4, 3), dtype=complex)])
def test_arrays_that_are_no_numbers(tmp_path, rows):
    np.save(tmp_path / "a.npy", rows)
    refusal(tmp_path / "a.npy")


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", [".ply", ".pcd", ".pts", ".npy", ".npz", ".las", ".laz", ".off", ".stl"])
def test_no_points_at_all_are_an_empty_cloud(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.empty((0, 3)))
    assert read_cloud(path).points.shape == (0, 3)


@ALL
def test_one_point(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, POINTS[:1])
    np.testing.assert_allclose(read_cloud(path).points, POINTS[:1])


def test_coloured_ply_holds_what_it_promises(tmp_path):
    colors = np.array([[255, 0, 0], [0, 128, 0], [1, 2, 3]], dtype=np.uint8)
    write_ply(tmp_path / "a.ply", POINTS, colors)
    body = (tmp_path / "a.ply").read_bytes().split(b"end_header\n")[1]
    assert struct.unpack("<dddBBB", body[:27]) == (*POINTS[0], 255, 0, 0)
    assert len(body) == 3 * 27
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.ply").points, POINTS)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_ply(tmp_path / "a.ply", POINTS)
    before = (tmp_path / "a.ply").read_bytes()
    with pytest.raises(IndexError):
        write_ply(tmp_path / "a.ply", np.zeros((2, 2)))
    assert (tmp_path / "a.ply").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.ply"]
