"""The verb `map`: what it writes and prints, its exit status, and what it refuses."""

import json

import numpy as np
import pytest

from pcreg.cli.map import main, scans_of
from pcreg.cli.register import main as register
from pcreg.io.cloud import read_cloud, write_ply
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room

pytestmark = pytest.mark.usefixtures("in_process")
FAST = ["--voxel", "0.2"]


@pytest.fixture
def scans(tmp_path):
    """A folder with two scans of a room, and a damaged file beside it."""
    room = stored_room(0)
    write_ply(tmp_path / "scans" / "a.ply", room.target[::2])
    write_ply(tmp_path / "scans" / "b.ply", room.target[1::2])
    (tmp_path / "x.ply").write_bytes((tmp_path / "scans" / "b.ply").read_bytes()[:-9])
    return tmp_path / "scans"


def test_all_files_of_a_map_are_written(scans, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(scans / "*.ply"), "--out", str(out), *FAST]) == 0
    files = ["graph.json", "poses.txt", "poses_kitti.txt", "map.ply", "overview.png", "viewer.html"]
    assert all((out / name).stat().st_size for name in files)
    printed = capsys.readouterr().out
    assert "map 1: 2 scans, 1 pairs in use" in printed
    assert "1 pairs tried, 1 registered, 0 of them not used" in printed
    whole = read_cloud(out / "map.ply").points
    room = stored_room(0).target
    np.testing.assert_allclose(whole.min(0), room.min(0), atol=0.1)
    assert 1000 < len(whole) < len(room)  # thinned
    for name in "pq":
        write_ply(tmp_path / f"{name}.ply", room[::4])
    assert main([str(tmp_path / "[pq].ply"), "--out", str(out), *FAST]) == 2
    assert "holds the map of other scans" in capsys.readouterr().err


def test_a_map_and_a_batch_among_their_scans_are_continued(scans, capsys):
    """Files that a run wrote are not taken for scans: those of further maps or of a stopped run, too."""
    for name, points in zip("cd", (stored_room(2).target[::2], stored_room(2).target[1::2]), strict=True):
        write_ply(scans / f"{name}.ply", points)
    command = [str(scans / "**" / "*"), "--out", str(scans), "--no-picture", *FAST]
    assert [main(command), main(command)] == [1, 1]
    assert "map_2/map.ply" not in capsys.readouterr().out.partition("written")[0]
    graph = (scans / "graph.json").read_text()
    assert [scan["map"] for scan in json.loads(graph)["scans"]] == [1, 1, 2, 2]
    batch = ["--batch", str(scans / "**" / "*"), "--out", str(scans / "pairs"), *FAST]
    assert [register(batch), register(batch)] == [1, 1]
    assert capsys.readouterr().out.count("2 of 3 pairs registered") == 2


def test_a_map_overwrites_nothing_of_others(scans, capsys):
    (scans / "poses.txt").write_text("0 0 0 0 0 0 0 1\n")
    command = [str(scans / "*.ply"), "--out", str(scans), *FAST]
    assert main(command) == 2
    assert "poses.txt: would be overwritten; name another folder" in capsys.readouterr().err
    assert len(list(scans.iterdir())) == 3
    (scans / "map_2").mkdir()
    (scans / "poses.txt").rename(scans / "map_2" / "poses.txt")
    assert main(command) == 2
    assert "map_2/poses.txt: would be overwritten; name another folder" in capsys.readouterr().err
    (scans / "graph.json").write_text("{}")
    (scans / "map_2" / "graph.json").write_text("{}")  # a map of its own
    assert main(command) == 2
    assert "map_2/poses.txt: would be overwritten; name another folder" in capsys.readouterr().err


def test_a_damaged_file_is_status_one_and_json_stands_alone(scans, tmp_path, capsys):
    """A note names two files with the same points."""
    (tmp_path / "y.ply").write_bytes((scans / "a.ply").read_bytes())
    names = [str(scans / "*"), str(tmp_path / "*.ply")]
    out = tmp_path / "out"
    assert main([*names, "--out", str(out), "--json", "--no-picture", *FAST]) == 1
    captured = capsys.readouterr()
    graph = json.loads(captured.out)
    assert graph == json.loads((out / "graph.json").read_text())
    assert f"y.ply: holds the same points as {scans / 'a.ply'}\n" in captured.err
    assert "x.ply" in graph["scans"][2]["error"]
    assert graph["scans"][2]["map"] is None
    assert not (out / "overview.png").exists()


def test_scans_are_added_to_a_map_in_its_folder(scans, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    assert main(["scans/*.ply", "--out", "out", "--no-picture", *FAST]) == 0
    write_ply("new.ply", stored_room(0).target[::3])
    assert main(["out", "new.ply", "--no-picture", *FAST]) == 0
    assert len(json.loads((out / "graph.json").read_text())["scans"]) == 3
    kept = (out / "pairs.jsonl").read_text()
    monkeypatch.chdir(out)  # its scans are found from elsewhere, too, and each is one by any name
    assert main([".", "../new.ply", "--no-picture", *FAST]) == 0
    assert (out / "pairs.jsonl").read_text() == kept
    assert len(json.loads((out / "graph.json").read_text())["scans"]) == 3
    assert main(["map.ply", "../new.ply", "--out", ".", *FAST]) == 2  # it would be overwritten
    capsys.readouterr()
    assert main(["../scans/*.ply", "--out", ".", "--no-picture", *FAST]) == 0
    assert "note: left out, as not named: 1 of 3 scans of this map, first " in capsys.readouterr().out
    assert main([".", "../new.ply", "--no-picture", *FAST]) == 0
    graph = (out / "graph.json").read_text()
    scans.joinpath("a.ply").rename(tmp_path / "away.ply")
    assert main([".", "../new.ply", "--no-picture", *FAST]) == 2
    assert "a.ply, in whose frame the map is, is missing; put it back" in capsys.readouterr().err
    assert (out / "graph.json").read_text() == graph
    (tmp_path / "away.ply").rename(scans / "a.ply")
    there = scans_of(out)
    (out / "graph.json").write_text(graph.replace(json.dumps(str(out)), '"/gone"'))
    assert scans_of(out) == there  # moved, map and scans alike
    scans.joinpath("b.ply").unlink()
    write_ply(tmp_path / "0.ply", stored_room(0).target[1::3])
    assert main([".", "../0.ply", "--no-picture", *FAST]) == 1
    content = json.loads((out / "graph.json").read_text())["scans"]
    assert [scan["name"][-5:] for scan in content] == ["a.ply", "b.ply", "w.ply", "0.ply"]
    assert "no such file" in content[1]["error"]
    np.testing.assert_array_equal(content[0]["T_map_scan"], np.eye(4))
    (out / "graph.json").write_text("{")
    with pytest.raises(InputError, match=r"is damaged \(.*\); delete it, and name the scans"):
        scans_of(out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere/*.ply"], "nowhere/*.ply: no such file, and no file matches; check the path"),
        (["{x}"], "{x}: too few files match; name 2 or more"),
        (["{x}", "{x}"], "{x} {x}: too few files match; name 2 or more"),
        (["{x}", "{folder}"], "{folder}: is a folder; name its files, as in '{folder}/*.ply'"),
        (["{x}", "--out", "{x}"], "{x}: --out is a file; name a folder"),
        (["{x}", "--voxel", "-1"], "voxel -1.0 is not a size; use a positive number of metres"),
    ],
)
def test_what_cannot_be_mapped_is_refused_in_one_sentence(scans, tmp_path, capsys, arguments, sentence):
    named, out = {"x": str(tmp_path / "x.ply"), "folder": str(scans)}, tmp_path / "out"
    given = [argument.format(**named) for argument in arguments]
    assert main([*given, *([] if "--out" in given else ["--out", str(out)])]) == 2
    assert capsys.readouterr().err == f"error: {sentence.format(**named)}\n"
    assert not out.exists()
