"""The benchmarks run on small inputs and keep what they measured."""

import io
import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import inverse, rotation_about, se3
from pcreg.io.cloud import write_ply
from pcreg.mapping.map import Map, MapEdge
from tests.datasets.kitti_tree import V, write_tree

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = ["cloud.npy", "--voxel=0.1", "--runs=1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory of a benchmark, with a cloud."""
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).uniform(0, 1, (2000, 3)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(BENCHMARKS)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch):
    """Run a script of the folder as a command; returns its exit status."""

    def script(name: str, *arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / name), *map(str, arguments)])
        threads = torch.get_num_threads()
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(BENCHMARKS / name), run_name="__main__")
        torch.set_num_threads(threads)
        return ended.value.code or 0

    return script


def result(path: str) -> list[dict[str, str]]:
    kept = json.loads((Path("outputs/benchmarks") / path).read_text())
    assert kept["measured"]["command"].startswith("python benchmarks/")
    return [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]]


def test_forward(run):
    assert run("network.py", "forward", *SMALL, "--fragment=300", "--batch", "2") == 0
    rows = result("forward.json")
    assert [row["engine"] for row in rows] == ["native", "voxel"] * 2
    assert all(float(row["both"].replace(",", "")) > 0 for row in rows)


@pytest.fixture
def pair(folder, room) -> list[str]:
    """The files of two scans of a room, and a list that has their truth."""
    write_ply(folder / "source.ply", room.source[::2])
    write_ply(folder / "target.ply", room.target[::2])
    truth = " ".join(map(str, room.T_target_source.ravel()))
    (folder / "pairs.txt").write_text(f"source.ply target.ply {truth}\n")
    return ["source.ply", "target.ply"]


def test_register(run, pair):
    assert run("register.py", "pairs", "--pair", "room", *pair, "--device=cpu", "--repeat=1") == 0
    assert [(row["descriptor"], row["clouds"]) for row in result("pairs.json")] == [
        ("FCGF", "room"),
        ("FPFH", "room"),
    ]


def test_every_way_is_held_against_the_truth(run, pair):
    ways = ["gravity", "nearer", "open3d"]
    assert run("pairs.py", "--lidar", ".", "--ways", *ways) == 0
    rows = result("pairs.json")
    assert [row["way"] for row in rows] == ways
    assert [row["strict"] for row in rows[:2]] == ["1"] * 2
    assert all(float(row["RTE m"]) < 0.1 for row in rows[:2])


def test_tables_of_runs_have_a_row_per_way_to_average(run, pair):
    columns = ["RR 0.3 m / 15 deg %", "accepted"]
    settings = ["data=folder", "data.root=.", "protocol=system", "seeds=[0]"]
    words = ["--run", "room", "limit=1", "--settings", *settings, "--columns", *columns]
    assert run("lists.py", *words, "--workers", 1) == 0
    (row,) = result("lists.json")
    assert row == {"list": "room", columns[0]: "100.0", columns[1]: "1"}


def test_a_table_in_markdown_is_kept(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("| | s |\n|---|---|\n| pcreg | 1.5 (2) |\n"))
    assert run("report.py", "--out", "kept.json") == 0
    assert json.loads(Path("kept.json").read_text())["rows"] == [["pcreg", "1.5 (2)"]]
    assert run("report.py", "--help") == 0  # of its input nothing is left


def test_few_scans_of_a_map_are_screened_each_with_each(run):
    assert run("map.py", "rooms", ".", "--count", 1, "--workers", 0) == 0
    assert run("map.py", "retrieval", "fragments/room_0", "--count", 3, "--workers", 0) == 0
    (row,) = result("map-retrieval.json")
    assert [row[key] for key in ("scans", "pairs", "of all %")] == ["3", "3", "100"]


@pytest.mark.parametrize("layout", ["3DMatch", "KITTI"])
def test_maps_are_held_against_poses(folder, layout):
    """One of four scans of a map is misplaced, by a pair that is wrong; one is alone."""
    poses = np.array([se3(rotation_about([0, 0, 1], 20 * n), np.array([n, 0.0, 0.0])) for n in range(5)])
    if layout == "3DMatch":
        scene = folder / "fragments/scene"
        scene.mkdir(parents=True)
        for n, pose in enumerate(poses):
            (scene / f"cloud_bin_{n}.ply").touch()
            np.savetxt(scene / f"cloud_bin_{n}.info.txt", pose, header="scene seq 0 49", comments="")
        for name, pairs in (("3DMatch", [(0, 1)]), ("3DLoMatch", [(1, 2), (2, 3), (0, 4), (0, 2)])):
            (log := folder / "benchmarks" / name / "scene/gt.log").parent.mkdir(parents=True)
            with log.open("w") as file:
                for i, j in pairs:
                    file.write(f"{i} {j} 5\n")
                    np.savetxt(file, inverse(poses[i]) @ poses[j])
    else:
        scene = folder / "sequences/08"
        write_tree(folder, poses @ inverse(V))  # of the camera
    benchmark = runpy.run_path(str(BENCHMARKS / "map.py"))
    paths, found = zip(*benchmark["poses_of"](scene), strict=True)
    np.testing.assert_allclose(found, poses, atol=1e-6)
    placed = se3(rotation_about([1, 0, 0], 50), np.array([3.0, 2.0, 1.0])) @ poses
    placed[3, 0, 3] += 0.5
    used = [(1, 0), (2, 1), (3, 2)]
    edges = [MapEdge(a, b, True, 0.99, "", True, "", inverse(placed[b]) @ placed[a]) for a, b in used]
    made = Map(tuple(map(str, paths)), ("",) * 5, placed, np.array([1, 1, 1, 1, 0]), tuple(edges), 0.05)
    row = benchmark["row_of"](made, poses, 2.0)
    assert row["median m"] < 1e-6
    counts = [row[key] for key in ("in maps", "alone", "placed", "used", "wrong")]
    assert counts == ["4", 1, 3, 3, 1]
    shares = benchmark["shares"](made, benchmark["lists_of"]([scene], dict(zip(paths, poses, strict=True))))
    expected = {"3DMatch %": 100, "3DLoMatch %": 50} if layout == "3DMatch" else {"LiDAR %": 30}
    assert shares == expected
    few = benchmark["lists_of"]([scene], dict(zip(paths[:2], poses, strict=False)))
    assert [len(pairs) for pairs in few.values()] == [1]


def test_operators_outside_git(folder):
    for script in BENCHMARKS.glob("*.py"):
        shutil.copy(script, folder)
    command = [sys.executable, "network.py", "operators", *SMALL, "--channels=3:8"]
    subprocess.run(command, check=True, timeout=120, cwd=folder)
    kept = Path("outputs/benchmarks/operators.json").read_text()
    assert json.loads(kept)["measured"]["commit"] is None
    (row,) = result("operators.json")
    assert (row["C -> M"], row["precision"]) == ("3 -> 8", "float32")
    assert float(row["forward"]) > 0


@pytest.mark.parametrize("words", ["pairs.py", "network.py operators missing.ply"])
def test_bad_input_is_one_sentence(run, capsys, words):
    assert run(*words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1
