"""The benchmarks run and write what they measured; the figures themselves are nobody's contract."""

import importlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse
from tests.datasets.street import street_pose, street_scan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def cloud(tmp_path) -> Path:
    path = tmp_path / "cloud.npy"
    np.save(path, np.random.default_rng(0).uniform(0, 1, (2000, 3)))
    return path


def test_operators(cloud, tmp_path):
    result = tmp_path / "operators.json"
    arguments = [cloud, "--voxel", "0.1", "--channels", "3:8", "--precision", "float32", "--runs", "1"]
    run("bench_operators.py", *arguments, "--json", result)
    measured = json.loads(result.read_text())
    facts = measured["triplets at 0.1 m"]
    assert facts["triplets"] > facts["buckets"] > facts["points"]
    (row,) = measured["operators at 0.1 m"]
    assert (row["C"], row["M"], row["precision"]) == (3, 8, "float32")
    assert min(row["both"], row["forward"]) > 0  # on a busy machine either may take longer, run once


def test_network(cloud, tmp_path, monkeypatch):
    result = tmp_path / "network.json"
    small = ["--fragment=300", "--sizes=2", "--pairs=1", "--batch=1", "--runs=1", "--threads=1"]
    run("bench_network.py", cloud, "--voxel=0.1", *small, "--json", result)
    measured = json.loads(result.read_text())
    native, voxel = measured["search"]
    assert (native["search"], voxel["search"]) == ("native", "voxel")
    assert native["points"] == voxel["points"] < native["T"]
    assert all(len(row["levels"].split()) == 4 for row in measured["pyramid"])
    for section, column in (("forward", "both"), ("training", "ms")):
        assert {row["engine"] for row in measured[section]} == {"native", "voxel"}
        assert all(row[column] > 0 for row in measured[section])
    monkeypatch.syspath_prepend(BENCHMARKS)
    tables = importlib.import_module("network_tables")
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    tables.save_tables(measured, "bench")
    index, forward, step = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("index", "forward", "step")
    )
    assert index["columns"] == ["N", "T", "native", "voxel", "native, MiB", "voxel, MiB"]
    assert {len(row) for row in index["rows"]} == {6}
    assert {row[0] for row in forward["rows"]} == {"1 x 300", f"{native['points']:,}"}
    assert [row[1] for row in step["rows"]] == ["native", "voxel"]


def test_scale(cloud, tmp_path):
    result, picture = tmp_path / "scale.json", tmp_path / "memory.png"
    small = ["--voxel", "0.1", "--min-points", "500", "--max-points", "500", "--threads", "1"]
    run("bench_scale.py", cloud, *small, "--json", result, "--plot", picture)
    rows = json.loads(result.read_text())["scale"]
    modes = [(row["model"], row["mode"]) for row in rows]
    assert modes[:2] == [("operator", "forward"), ("operator", "training")]
    assert modes[2:] == [("ResUNet", mode) for mode in ("forward", "training", "checkpointed")]
    assert {row["points"] for row in rows} == {500}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_odometry(tmp_path):
    pytest.importorskip("small_gicp", reason="small_gicp is not installed (the odometry extra)")
    for n in range(5):
        np.save(tmp_path / f"{n}.npy", street_scan(street_pose(n), seed=n))
    np.savetxt(tmp_path / "poses.txt", [street_pose(n)[:3].ravel() for n in range(5)])
    printed = run("bench_odometry.py", tmp_path, "--every", "1", "2", "--pairs", "3")
    for line, scans in zip(printed.splitlines()[1:], (5, 3), strict=True):
        _, steps, pairs, errors = line.split("|")
        assert steps.split() == [str(scans - 1), "0", "0", "0"]
        assert pairs.split()[:4] == ["3", "0", "0", "0"]
        assert max(map(float, errors.replace(",", "").split())) < 0.3


@pytest.fixture
def street(tmp_path) -> Path:
    """A folder of two scans of a street, 3 m apart, and their motion."""
    poses = [street_pose(0), street_pose(3)]
    for n, pose in enumerate(poses):
        np.save(tmp_path / f"{n}.npy", street_scan(pose, seed=n))
    motion = (inverse(poses[0]) @ poses[1]).ravel()
    (tmp_path / "pairs.txt").write_text(" ".join(["1.npy", "0.npy", *map(str, motion)]))
    return tmp_path


def test_registration(street):
    result = street / "registration.json"
    printed = run("bench_registration.py", "--lidar", street, "--json", result)
    content = json.loads(result.read_text())
    (table,) = (content[key] for key in content if "loose" in key)
    rows = {row["method"]: row for row in table}
    methods = {"ours", "ours, FPFH", "Open3D's tutorial, 0.3 m", "the same, wide FPFH, 0.3 m"}
    if find_spec("kiss_matcher"):
        methods |= {"KISS-Matcher, 0.3 m", "KISS-Matcher and ICP, 0.3 m"}
    else:
        assert "pip install kiss-matcher" in printed
    assert set(rows) == methods
    assert all(row["pairs"] == 1 and row["s"] > 0 for row in rows.values())
    for right in ("ours", "the same, wide FPFH, 0.3 m"):
        assert rows[right]["strict"] == 1
    assert (rows["ours"]["wrong accepted"], rows["ours"]["right refused"]) == (0, 0)
    answers = content[f"{street}, every answer"]
    assert [answer["method"] for answer in answers] == list(rows)


def test_covariance(street):
    """The pair is answered right, and its error is one that the covariance allows."""
    header, row = run("bench_covariance.py", "folder", street).splitlines()
    assert header.split()[:5] == ["pairs", "tried", "accepted", "right", "mean"]
    name, *counts, mean, median, _, metres, _ = row.split()
    assert (name, counts, mean) == (street.name, ["1", "1", "1"], median)
    assert 0 < float(mean) < 30
    assert float(metres) < 0.2


def test_few_scans_of_a_map_are_screened_each_with_each():
    header, row = run("bench_map_retrieval.py", 3).splitlines()[-2:]
    assert header.split()[:2] == ["scans", "pairs"]
    assert row.split()[:4] == ["3", "3", "100", "1.000"]


SCRIPTS = [
    "bench_operators.py",
    "bench_scale.py",
    "bench_network.py",
    "bench_odometry.py",
    "bench_registration.py --lidar",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_bad_input_is_one_sentence(script, tmp_path):
    name, *option = script.split()
    command = [sys.executable, BENCHMARKS / name, *option, tmp_path / "missing.ply"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def run(script: str, *arguments: object) -> str:
    """Run a script of the folder; returns what it printed."""
    command = [sys.executable, BENCHMARKS / script, *map(str, arguments)]
    return subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
