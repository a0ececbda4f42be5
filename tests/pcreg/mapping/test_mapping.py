"""Mapping as a whole, from files to maps."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import pcreg
from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.io.cloud import write_ply
from pcreg.mapping import consolidation, growing_map, mapping
from pcreg.mapping.consolidation import Consolidation
from pcreg.mapping.submap import Scan
from pcreg.registration.batch import Work
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.stored import CloudFile
from pcreg.registration.matching.prior import Prior
from pcreg.registration.registrar import Registrar
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import locked
from tests.kernels.clouds import needs_gpu
from tests.rooms import stored_room

VOXEL = 0.2


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Three scans of each of two rooms, in a mixed order, their poses, and a damaged file.

    The third scan of a room has one half of the points of its first one, which keeps the other half.
    """
    folder = tmp_path_factory.mktemp("scans")
    truth = {}
    for number, order in ((0, "ace"), (2, "bdf")):
        room = stored_room(number)
        poses = room.T_world_target, room.T_world_source, room.T_world_target
        for name, points, pose in zip(
            order, (room.target[::2], room.source[::2], room.target[1::2]), poses, strict=True
        ):
            write_ply(folder / f"{name}.ply", points)
            truth[name] = pose
    (folder / "x.ply").write_bytes((folder / "a.ply").read_bytes()[:-9])
    return folder, truth


def paths_of(folder):
    return [str(path) for path in sorted(folder.glob("*.ply"))]


@pytest.fixture(scope="module")
def mapped(places, tmp_path_factory):
    folder, truth = places
    out = tmp_path_factory.mktemp("out")
    return mapping.run(Registrar(voxel=VOXEL), paths_of(folder), out, workers=0), truth, out


def test_two_scenes_give_two_maps_and_a_damaged_file_spoils_neither(mapped):
    found, truth, _ = mapped
    names = [name.rsplit("/", 1)[1][0] for name in found.names]
    assert names == list("abcdefx")
    assert found.number.tolist() in ([1, 2, 1, 2, 1, 2, 0], [2, 1, 2, 1, 2, 1, 0])
    assert "x.ply" in found.errors[6]
    assert found.errors[:6] == ("",) * 6
    assert found.alone == []
    assert not found.is_whole
    for first, number in (("a", found.number[0]), ("b", found.number[1])):
        for row in found.scans(int(number)):
            true = inverse(truth[first]) @ truth[names[row]]
            assert translation_error(found.T_map_scan[row], true) < 0.1
            assert rotation_error(found.T_map_scan[row], true) < 2
    for edge in found.edges:
        assert edge.used == (not edge.unused_because)
        assert not edge.used or found.number[edge.source] == found.number[edge.target]


def test_submaps_decide_about_many_scans_after_each_round(mapped, places, tmp_path, monkeypatch):
    """Pairs of many scans are tried at a single voxel size."""
    found, _, out = mapped
    cut, calls, thorough = Consolidation.cut, [], []
    for few in (0, 1):
        folder = shutil.copytree(out, tmp_path / str(few))
        monkeypatch.setattr(mapping, "FEW_SCANS", 5 + few)  # six scans can be used
        with monkeypatch.context() as patched:
            patched.setattr(Consolidation, "cut", lambda self, few=few: calls.append(few) or cut(self))
            patched.setattr(mapping, "Work", lambda *given: thorough.append(given[-1]) or Work(*given))
            again = mapping.run(Registrar(voxel=VOXEL), paths_of(places[0]), folder, workers=0)
        assert again.number.tolist() == found.number.tolist()
    assert calls.count(0) > calls.count(1) > 0
    assert thorough == [False, True]


def test_it_goes_on_where_it_was_stopped_with_the_same_bytes(mapped, places, tmp_path, monkeypatch):
    """The run is stopped after three pairs; the next run computes only the others."""
    _, _, out = mapped
    paths = paths_of(places[0])
    (tmp_path / "pairs.jsonl").write_bytes(b"".join((out / "pairs.jsonl").read_bytes().splitlines(True)[:3]))
    found = mapping.run(Registrar(voxel=VOXEL), paths, tmp_path, workers=0)
    found.save(tmp_path)
    mapped[0].save(out)
    for name in ("graph.json", "poses.txt", "poses_kitti.txt", "map_2/poses.txt"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    lines = (tmp_path / "pairs.jsonl").read_text().splitlines()
    assert any('"answer"' in line for line in lines)  # about submaps
    for place, name in ((Work, "register"), (growing_map, "_screen"), (consolidation, "answered")):
        monkeypatch.setattr(place, name, lambda *_: 1 / 0)
    mapping.run(Registrar(voxel=VOXEL), paths, tmp_path, workers=0)
    assert (tmp_path / "pairs.jsonl").read_text().splitlines() == lines


@needs_gpu
def test_workers_that_share_a_gpu_make_the_map_of_one_process(places, tmp_path):
    for workers in (0, 2):
        out = tmp_path / str(workers)
        mapping.run(Registrar(device="cuda"), paths_of(places[0]), out, workers=workers).save(out)
    for name in ("graph.json", "poses.txt", "poses_kitti.txt"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_files_of_a_map_can_be_read_again(mapped, tmp_path):
    from pcreg.io.motion import read_poses

    found, _, _ = mapped
    paths = found.save(tmp_path)
    assert [path.name for path in paths] == ["graph.json", *["poses.txt", "poses_kitti.txt"] * 2]
    for number, folder in ((1, tmp_path), (2, tmp_path / "map_2")):
        rows = found.scans(number)
        for name in ("poses.txt", "poses_kitti.txt"):
            np.testing.assert_allclose(read_poses(folder / name), found.T_map_scan[rows], atol=1e-8)
    graph = json.loads((tmp_path / "graph.json").read_text())
    assert len(graph["scans"]) == 7
    assert [edge["used"] for edge in graph["edges"]] == [edge.used for edge in found.edges]


@pytest.mark.parametrize(
    ("origin", "stated", "expected"),
    [([0, 0, 0], None, ["b"]), ([0, 0, 0], np.zeros(3), []), ([5, 0, 0], None, [])],
    ids=["at the sensors", "stated", "elsewhere"],
)
def test_a_viewpoint_behind_a_scan_is_corrected_if_others_face_their_origins(origin, stated, expected):
    """Normals of four scans of a wall point to the sensor, except in the second scan."""
    wall = np.random.default_rng(0).uniform(1, 2, (50, 3)) * [0, 1, 1] + [1, 0, 0]
    normals = np.tile([-1.0, 0, 0], (50, 1))
    frame = LocalFrame(-np.array(origin, dtype=float), 1e-6)
    scans = {name: Scan(frame, None, wall - origin - frame.corner, normals) for name in "acde"}
    scans["b"] = replace(scans["a"], normals=-normals)
    files = {name: CloudFile(name, "m", None, "auto", stated=stated) for name in scans}
    assert mapping._seen_from_behind(scans, files) == expected


def test_the_viewpoint_that_is_corrected_is_that_of_the_map(places, tmp_path, monkeypatch):
    """A scan is described from its origin, although another viewpoint is estimated."""
    paths, described = paths_of(places[0])[:2], []
    monkeypatch.setattr(mapping, "_seen_from_behind", lambda scans, files: paths[:1])
    monkeypatch.setattr(mapping, "GrowingMap", lambda work, *_: described.append(work) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mapping.run(Registrar(voxel=VOXEL), paths, tmp_path, workers=0)
    (work,) = described
    assert [len(work.stamp((path,))) for path in paths] == [3, 2]  # no record is that of the estimate
    stated = [work.cloud(path).at(work.registrar.at(VOXEL).descriptor) for path in paths]
    assert [cloud.viewpoint_known for cloud in stated] == [True, False]


def test_arrays_are_mapped_as_files_are(tmp_path):
    """A viewpoint given as numbers holds for all arrays; a half-written array is written again."""
    points = stored_room(0).target
    clouds = [points[::2], points[1::2], np.empty((0, 3))]
    found = pcreg.register_all(clouds, voxel=VOXEL)
    assert repr(found) == "<Map of 3 scans: 2 in map 1, 0 alone, 1 unusable>"
    assert found.names == ("cloud 0", "cloud 1", "cloud 2")
    assert found.errors[2].startswith("cloud 2: ")
    assert translation_error(found.T_map_scan[1], np.eye(4)) < 0.02
    np.testing.assert_array_equal(found.transform(0, points), points)
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "cloud_0.npy").write_bytes(b"half")
    settings = {"voxel": np.float32(VOXEL), "seed": np.int64(1), "folder": tmp_path, "viewpoint": (0, 0, 0)}
    found = pcreg.register_all([1000 * cloud for cloud in clouds], units="mm", **settings)
    assert found.number.tolist() == [1, 1, 0]
    np.testing.assert_allclose(found.transform(0, 1000 * points), points)
    with locked(tmp_path, ""), pytest.raises(InputError, match="another run is writing there"):
        pcreg.register_all(clouds, **settings)
    with pytest.raises(InputError, match="is one cloud; pass a list"):
        pcreg.register_all("a.ply")
    with pytest.raises(InputError, match="workers=-1: give a number"):
        pcreg.register_all([points, points], workers=-1)


def test_no_map_depends_on_where_the_origin_of_its_scans_lies():
    room, far = stored_room(0), np.array([4e8, -5e8, 1e8])
    scans = room.target[::2], room.source[::2], room.target[1::2]
    here, there = (pcreg.register_all([scan + at for scan in scans], voxel=VOXEL) for at in (0, far))
    for row, scan in enumerate(scans):
        moved = there.transform(row, scan + far) - far
        np.testing.assert_allclose(moved, here.transform(row, scan), rtol=0, atol=1e-5)


def test_scans_that_are_too_large_for_metres_are_noted(caplog):
    room = stored_room(0)
    scans = [1000 * room.target[::2], 1000 * room.target[1::2]]
    assert pcreg.register_all(scans).is_whole
    assert "if they are in millimetres, add --units mm" in caplog.text


def test_what_is_no_map_is_refused(places, tmp_path):
    damaged = str(places[0] / "x.ply")
    with pytest.raises(InputError, match="1 scans are not a map; name two or more"):
        mapping.run(Registrar(voxel=VOXEL), [damaged], tmp_path, workers=0)
    with pytest.raises(InputError, match=r"x\.ply: is named twice"):
        mapping.run(Registrar(voxel=VOXEL), ["y.ply", damaged, damaged], tmp_path, workers=0)
    near = Prior(near=np.eye(4), within=(1, 10))
    with pytest.raises(InputError, match=r"prior\.near: is a transform of one pair"):
        mapping.run(Registrar(voxel=VOXEL), paths_of(places[0])[:2], tmp_path, prior=near, workers=0)
    with pytest.raises(InputError, match="1 of 2 scans can be used"):
        mapping.run(Registrar(voxel=VOXEL), [damaged, paths_of(places[0])[0]], tmp_path, workers=0)
    with pytest.raises(InputError, match="0 of 2 scans can be used; cloud 0: holds no points"):
        pcreg.register_all(2 * [np.empty((0, 3))], voxel=VOXEL)
