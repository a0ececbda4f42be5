"""The KITTI data set: frames, pairs and truths, on one written tree, so that all of its tests share it."""

import json
import runpy
import shutil

import numpy as np
import pytest

import pcreg.datasets.kitti
from pcreg.cli.config import compose_config
from pcreg.cli.evaluate import evaluate
from pcreg.datasets.kitti import Kitti, distance_pairs
from pcreg.geometry.se3 import rotation_about, rotation_error, se3, translation_error
from pcreg.io.motion import read_poses
from pcreg.io.pairs import evenly, keep_evenly
from pcreg.runtime.errors import InputError
from tests.datasets.kitti_tree import Y, Z, line, write_scene, write_tree


@pytest.fixture
def tree(tmp_path):
    """A drive of KITTI's layout, and the true motion of its first scan into the second."""
    return write_scene(tmp_path)


@pytest.mark.parametrize(
    ("positions", "pairs"),
    [
        (line(np.arange(31) * 1.0), [(0, 10), (11, 21)]),
        (line(np.arange(20) * 2.4), [(0, 4), (5, 9), (10, 14)]),
        (line(np.arange(300) * 0.12), [(0, 83), (84, 167), (168, 251)]),
        (line([0, 0, 0, 12, 12.5, 13, 25]), [(0, 2), (3, 5)]),
    ],
)
def test_ten_metre_rule_worked_examples(positions, pairs):
    assert distance_pairs(positions) == pairs


def test_ten_metre_rule_edges():
    # a distance in space, not along the path: up and away on a helix of radius 1
    angle = np.arange(60) * 0.5
    helix = np.c_[np.cos(angle), np.sin(angle), np.arange(60) * 1.0]
    assert distance_pairs(helix)[0] == (0, 9)  # 10 m up is 10.2 m away
    # exactly 10 m is not beyond
    assert distance_pairs(line([0, 10, 20])) == [(0, 1)]
    # a standing car: the first frame creeps on until the window reaches the motion
    standing = np.r_[np.zeros(150), np.arange(1, 20) * 6.0]
    assert distance_pairs(line(standing))[0] == (52, 150)  # a gap of 98, the largest there is
    # one jump beyond the distance: a frame is paired with itself
    assert distance_pairs(line([0, 20, 21])) == [(0, 0)]
    assert distance_pairs(line([])) == []
    assert distance_pairs(line(np.arange(16) * 1.0), distance=4.5) == [(0, 4), (5, 9), (10, 14)]


def test_motion_goes_through_the_calibration(tmp_path):
    """Identity, then 5 degrees about the camera's y and 10 m along its z, seen from the LiDAR."""
    write_tree(tmp_path, [np.eye(4), np.eye(4), se3(rotation_about(Y, 5), np.array([0.2, 0, 10]))])
    T = Kitti(tmp_path, 8, truth="odometry").drives["08"].motion(0, 2)
    np.testing.assert_allclose(T[:3, 3], [-9.972078, -0.771079, -0.148189], atol=2e-6)
    np.testing.assert_allclose(T[0, :3], [0.996195532, -0.087146123, -0.000119778], atol=1e-7)


def test_self_pairs_and_the_pair_that_everyone_removes_are_left_out(tmp_path):
    x = np.r_[np.zeros(15), np.arange(58 - 15 + 1) * 0.23, 30, 60]  # 15 to 58 is 9.9 m, then two jumps
    x[:15] = -20 * np.arange(15, 0, -1)
    poses = [se3(np.eye(3), np.array([0, 0, z])) for z in x]
    assert {(0, 0), (15, 58)} <= set(distance_pairs(line(x)))
    write_tree(tmp_path, poses, sequence=8)
    write_tree(tmp_path, poses, sequence=9)
    pairs = Kitti(tmp_path, [8, 9], truth="odometry").pairs
    assert [pair.name for pair in pairs] == ["09/000015->09/000058"]


def test_correction_is_multiplied_from_the_left(tree, monkeypatch):
    root, _ = tree
    M = se3(rotation_about(Z, 3), np.array([-10, 0.5, 0]))
    correction = se3(rotation_about(Y, 0.4), np.array([0.05, -0.02, 0.1]))
    monkeypatch.setattr(pcreg.datasets.kitti._Drive, "motion", lambda *_: M)
    monkeypatch.setattr(pcreg.datasets.kitti, "corrections", lambda *_: [correction])
    (right,), (compatible,) = (Kitti(root, 8, truth=truth).pairs for truth in ("icp", "icp-fcgf-compat"))
    np.testing.assert_allclose(right.T_target_source[:3, 3], [-9.949756307, 0.48, 0.169812603], atol=1e-9)
    np.testing.assert_allclose(compatible.T_target_source[:3, 3], [-9.949021804, 0.482644207, 0.1], atol=1e-9)
    difference = right.T_target_source, compatible.T_target_source
    assert translation_error(*difference) == pytest.approx(0.069866522, abs=1e-8)
    assert rotation_error(*difference) == pytest.approx(0.020941516, abs=1e-6)


def test_icp_mends_the_odometry(tree):
    root, T_true = tree
    (odometry,) = Kitti(root, [8], truth="odometry").pairs
    (refined,) = Kitti(root / "dataset", [8], workers=0).pairs
    assert (refined.source, refined.target, refined.scene) == ("08/000000", "08/000001", "08")
    assert translation_error(odometry.T_target_source, T_true) > 0.05
    assert translation_error(refined.T_target_source, T_true) < 0.002
    assert rotation_error(refined.T_target_source, T_true) < 0.02


def test_a_limit_takes_effect_before_the_corrections(tree):
    root, _ = tree
    tree = root / "dataset"
    for copy in ("09", "10"):
        shutil.copytree(tree / "sequences/08", tree / f"sequences/{copy}")
        shutil.copy(tree / "poses/08.txt", tree / f"poses/{copy}.txt")
    limited = Kitti(root, [8, 9, 10], workers=0)
    assert (limited.name, Kitti(root, [8, 9, 10], distance=4).name) == ("KITTI", "KITTI, distance=4")
    keep_evenly(limited, 2)
    whole = Kitti(root, [8, 9, 10], workers=0, cache=root / "whole").pairs
    for one, other in zip(limited.pairs, evenly(whole, 2), strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.T_target_source, other.T_target_source)
    kept = (root / "icp/icp.jsonl").read_text()
    assert [json.loads(line)["pair"][:2] for line in kept.splitlines()] == ["08", "10"]
    keep_evenly(limited, 1)  # also of pairs that were asked for
    assert [pair.name for pair in limited.pairs] == [whole[0].name]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"sequences": [8, 9]}, r"poses.09.txt: not found; .* data.sequences"),
        ({"truth": "best"}, "truth=best: unknown; choose one of icp, "),
        ({"distance": 0}, "distance=0"),
    ],
)
def test_settings_that_cannot_be_are_refused(tree, settings, named):
    with pytest.raises(InputError, match=named):
        Kitti(tree[0], **({"sequences": 8} | settings))


def edited(change):
    return lambda path: path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("file", "damage", "named"),
    [
        ("sequences/08/calib.txt", lambda path: path.unlink(), "calib.txt: not found"),
        ("sequences/08/calib.txt", edited(lambda text: "Tr: 1 2 3\n"), "calib.txt: has no line `Tr:`"),
        ("sequences/08/calib.txt", edited(lambda text: text.replace("Tr", "Tr2")), "has no line `Tr:`"),
        (
            "sequences/08/velodyne/000001.bin",
            lambda path: path.rename(path.with_name("000007.bin")),
            r"000007.bin: a scan without a pose \(3 poses\)",
        ),
        (
            "poses/08.txt",
            edited(lambda text: text[: text.rfind("\n", 0, -1) + 1]),
            r"000002.bin: a scan without a pose \(2 poses\)",
        ),
        ("poses/08.txt", edited(lambda text: text[:-30]), "08.txt: cannot be read as poses"),
    ],
)
def test_damaged_files_are_named(tree, file, damage, named):
    damage(tree[0] / "dataset" / file)
    with pytest.raises(InputError, match=named):
        Kitti(tree[0], 8)


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        (None, "000001.bin is missing"),
        (-5, "000001.bin is truncated: 191995 bytes"),
        (0, "000001.bin is truncated: 0 points, where scans have about 12000"),
        (65536, "truncated: 4096 points, where scans have"),
    ],
)
def test_a_broken_scan_is_named_and_can_be_done_without(tree, kept, named):
    root, _ = tree
    scan = root / "dataset/sequences/08/velodyne/000001.bin"
    content = scan.read_bytes()
    scan.unlink()
    if kept is not None:
        scan.write_bytes(content[:kept])
    with pytest.raises(InputError, match=rf"1 of 1 pairs .*{named}.* data.skip_broken=true"):
        Kitti(root, 8)
    dataset = Kitti(root, 8, skip_broken=True)
    (left_out,) = dataset.left_out
    assert (dataset.pairs, left_out.partition(" (")[0]) == ([], "08/000000->08/000001")
    assert named in left_out


@pytest.mark.parametrize(("sequences", "count"), [(range(6), 1358), ((6, 7), 180), ((8, 9, 10), 555)])
def test_the_ten_public_pose_files_give_the_known_counts(kitti_root, sequences, count):
    poses = [read_poses(kitti_root / "poses" / f"{n:02d}.txt") for n in sequences]
    listed = [distance_pairs(each[:, :3, 3]) for each in poses]
    total = sum(map(len, listed))
    assert total - (8 in sequences) == count  # 556 in the list; 8, 15, 58 is removed
    if 8 in sequences:
        assert (15, 58) in listed[0]
        assert [len(each) for each in listed] == [307, 162, 87]


@pytest.mark.usefixtures("in_process")
def test_a_real_drive_agrees_with_an_independent_truth_and_is_measured_without_a_broken_scan(
    real_data, tmp_path, capsys
):
    """The truth of pair 0, 31 of the city drive was refined by generalised ICP."""
    runpy.run_path(str(real_data / "lidar/unpack.py"))["unpack"](tmp_path)
    dataset = Kitti(tmp_path, [90], truth="odometry")
    listed = [(0, 30), (31, 54), (55, 79), (80, 102)]
    assert [pair.name for pair in dataset.pairs] == [f"90/{a:06d}->90/{b:06d}" for a, b in listed]
    row = np.loadtxt(real_data / "lidar/hdl64_city/pairs_10m.txt")[0]
    target, source, T_true = int(row[0]), int(row[1]), row[8:].reshape(4, 4)
    odometry = dataset.drives["90"].motion(source, target)
    clouds = (dataset.cloud(f"90/{frame:06d}") for frame in (source, target))
    refined = pcreg.datasets.kitti.icp(*clouds, odometry) @ odometry
    assert translation_error(odometry, T_true) > 0.04
    assert translation_error(refined, T_true) < 0.02
    assert rotation_error(refined, T_true) < 0.1
    (scan,) = tmp_path.rglob("sequences/90/velodyne/000102.bin")  # of the last of four pairs
    scan.write_bytes(scan.read_bytes()[: 4096 * 100])
    data = "data=kitti", "data.sequences=[90]", "data.skip_broken=true", "data.workers=1"
    settings = "limit=1", "seeds=[0]", "protocol.samples=[5000]", "protocol.mutual=true"
    places = f"data.root={tmp_path}", f"out={tmp_path / 'out'}", f"cache={tmp_path / 'features'}"
    capsys.readouterr()
    figures = evaluate(compose_config("evaluate", [*data, *settings, *places]))
    assert figures["pairs"] == 1
    assert figures["RR_2m_5deg"] == 1.0
    shown = capsys.readouterr().out
    for words in ("1 pairs left out, first 90/000080->90/000102", "RR 0.2 m / 1 deg %", "RR rmse %"):
        assert words in shown


def test_corrections_are_computed_once_and_shared_by_both_orders(tree, monkeypatch):
    root, _ = tree
    first = Kitti(root, 8, workers=0).pairs[0]
    assert [path.name for path in (root / "icp").iterdir()] == ["icp.jsonl"]
    monkeypatch.setattr(pcreg.datasets.kitti, "icp", None)  # a second run would fail
    np.testing.assert_array_equal(Kitti(root, 8).pairs[0].T_target_source, first.T_target_source)
    assert len(Kitti(root, 8, truth="icp-fcgf-compat").pairs) == 1


def test_corrections_are_computed_in_parallel_and_go_on_where_they_were_stopped(tree):
    root, _ = tree
    tree, cache = root / "dataset", root / "elsewhere"
    shutil.copytree(tree / "sequences/08", tree / "sequences/09")
    shutil.copy(tree / "poses/08.txt", tree / "poses/09.txt")
    whole = Kitti(root, [8, 9], cache=cache, workers=2).pairs
    lines = (cache / "icp.jsonl").read_text().splitlines(keepends=True)
    (cache / "icp.jsonl").write_text(lines[0] + lines[1][:100])
    again = Kitti(root, [8, 9], cache=cache, workers=0).pairs
    assert (cache / "icp.jsonl").read_text() == "".join(lines)
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one.T_target_source, other.T_target_source)
    assert not (root / "icp").exists()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"code": "', '"code": "0', "other code than today's wrote it"),
        ('"open3d": "', '"open3d": "9.', r"holds another run \(open3d"),
        ('"start": [[0.', '"start": [[0.1', "made from other poses"),
    ],
)
def test_a_cache_of_other_code_or_poses_is_refused(tree, old, new, named):
    root, _ = tree
    _ = Kitti(root, 8, workers=0).pairs
    (path,) = (root / "icp").iterdir()
    changed = path.read_text().replace(old, new)
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(InputError, match=rf"jsonl: {named}.*data.cache=FOLDER"):
        _ = Kitti(root, 8, workers=0).pairs
    assert path.read_text() == changed


def test_cache_that_cannot_be_written_is_bad_input(tree):
    root, _ = tree
    (root / "file").write_text("")
    with pytest.raises(InputError, match=r"data.cache=FOLDER"):
        _ = Kitti(root, 8, cache=root / "file", workers=0).pairs
