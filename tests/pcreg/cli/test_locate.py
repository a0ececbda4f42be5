"""`pcreg locate` as a person calls it."""

import json
import re

import numpy as np
import pytest

from pcreg.cli import locate
from pcreg.cli.locate import main
from pcreg.geometry.se3 import transform
from pcreg.io.cloud import write_ply
from tests.rooms import stored_room

VOXEL = ["--voxel", "0.1"]


@pytest.fixture(scope="module")
def files(room, tmp_path_factory):
    """A scan of a room, one of another, and the map of the first room, as `pcreg map` names it."""
    folder = tmp_path_factory.mktemp("files")
    write_ply(folder / "scan.ply", room.source)
    write_ply(folder / "other.ply", stored_room(2).source)
    (folder / "map").mkdir()
    write_ply(folder / "map" / "map.ply", transform(room.T_world_target, room.target))
    return folder


def test_a_scan_that_is_found_is_status_0(files, room, tmp_path, capsys):
    command = [str(files / "scan.ply"), str(files / "map"), *VOXEL, "--out", str(tmp_path)]
    assert main(command) == 0
    (found,) = json.loads((tmp_path / "located.json").read_text())
    np.testing.assert_allclose(found["T_target_source"], room.T_world_source, atol=0.1)
    middle = transform(room.T_world_source, (room.source.min(0) + room.source.max(0)) / 2)
    np.testing.assert_allclose(found["middle"], middle, atol=0.1)
    place = " +".join(f"{value:.2f}" for value in found["middle"])
    assert re.search(f"found, confidence .* {place} ", capsys.readouterr().out)
    assert found["registered"] is True


def test_a_doubtful_unit_is_noted(files, tmp_path, capsys):
    main([str(files / "scan.ply"), str(files / "map/map.ply"), "--units", "mm", "--out", str(tmp_path)])
    assert "mm across in mm: if its coordinates are metres" in capsys.readouterr().out


def test_the_folder_of_maps_is_in_metres_and_its_largest_is_searched(room, tmp_path, capsys):
    write_ply(tmp_path / "scan.ply", 1000 * room.source)
    write_ply(tmp_path / "map.ply", room.target)
    (tmp_path / "map_2").mkdir()
    command = [str(tmp_path / "scan.ply"), str(tmp_path), *VOXEL, "--units", "mm", "--out", str(tmp_path)]
    assert main(command) == 0
    assert "holds several maps; the largest is searched, and not map_2" in capsys.readouterr().out


def test_viewpoints_that_a_folder_states_are_used(files, room, tmp_path):
    place = room.T_world_target[:3, 3]
    points = transform(room.T_world_target, room.target)
    viewpoints = np.broadcast_to(place, points.shape)
    np.savez_compressed(tmp_path / "map.npz", points=points, viewpoints=viewpoints)
    write_ply(tmp_path / "map.ply", points[:100])
    assert main([str(files / "scan.ply"), str(tmp_path), *VOXEL, "--out", str(tmp_path)]) == 0
    (found,) = json.loads((tmp_path / "located.json").read_text())
    assert found["viewpoints"]["target"] == "per point"
    np.testing.assert_allclose(found["T_target_source"], room.T_world_source, atol=0.1)


def test_workers_find_scans_in_natural_order_and_one_that_is_not_found_is_status_1(files, tmp_path, capsys):
    (tmp_path / "empty.ply").touch()
    (tmp_path / "last.ply").write_bytes((files / "scan.ply").read_bytes())
    scans = [*map(str, sorted(files.glob("*.ply"))), f"{tmp_path}/empty.ply", f"{tmp_path}/last.ply"]
    named = [str(tmp_path / "*.ply"), str(files / "*.ply"), str(files / "map" / "map.ply")]
    assert main([*named, *VOXEL, "--out", str(tmp_path / "out"), "--json"]) == 1
    found = json.loads((tmp_path / "out" / "located.json").read_text())
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == found
    assert [each["scan"] for each in found] == scans
    assert [each.get("registered") for each in found] == [False, True, None, True]
    assert "empty.ply: the file is empty" in found[2]["error"]


def test_a_run_that_was_stopped_continues(files, tmp_path, monkeypatch, capsys):
    done = []

    def until_stopped(*work, path):
        done.append(path)
        if len(done) == 2:
            raise KeyboardInterrupt
        return {"registered": False, "number": len(done), "reason": "", "middle": [0, 0, 0]}

    monkeypatch.setattr(locate, "_record", lambda *work: until_stopped(path=work[-1]))
    command = [str(files / "*.ply"), str(files / "map"), *VOXEL, "--out", str(tmp_path)]
    assert main(command) == 130
    assert main([*command, "--seed", "1"]) == 2
    words = "holds another run (seed is 0 there and 1 here); use the same, or name another folder"
    assert words in capsys.readouterr().err
    assert main(command) == 1
    assert [path[-9:] for path in done] == ["other.ply", "/scan.ply", "/scan.ply"]
    assert [each["number"] for each in json.loads((tmp_path / "located.json").read_text())] == [1, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["located.json"]


@pytest.mark.parametrize(
    ("scan", "target", "words"),
    [
        ("none.ply", "map", "none.ply: no such file"),
        ("scan.ply", "none.ply", "none.ply: no such file"),
        ("scan.ply", ".", "holds no map.ply"),
    ],
)
def test_bad_input_is_status_2_and_leaves_nothing(files, tmp_path, capsys, scan, target, words):
    out = tmp_path / "out"
    assert main([str(files / scan), str(files / target), *VOXEL, "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()
